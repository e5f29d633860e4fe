"""Sources of replies: an OpenAI-compatible endpoint, a recorded transcript, or a mailbox that a person answers.

All three follow `ModelClient`; whatever goes wrong is a `ModelError`. Each client is imported from its own module
(`agent.models.openai_client`, `.recorded`, `.mailbox`), so that the OpenAI SDK is loaded only where it is used.
"""

from agent.models.base import (
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    ModelClient,
    ModelError,
    ModelNotFound,
    NoApiKey,
    RateLimited,
    RecordingExhausted,
    ReplyAwaited,
    ServerFailed,
    ToolsNotSupported,
    ToolSpec,
    Unauthorized,
)

__all__ = [
    "BadRequest",
    "ConnectionFailed",
    "ContextTooLong",
    "ModelClient",
    "ModelError",
    "ModelNotFound",
    "NoApiKey",
    "RateLimited",
    "RecordingExhausted",
    "ReplyAwaited",
    "ServerFailed",
    "ToolSpec",
    "ToolsNotSupported",
    "Unauthorized",
]
