from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CloseReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLOSE_REASON_UNSPECIFIED: _ClassVar[CloseReason]
    CLOSE_REASON_ROOT_ENDED: _ClassVar[CloseReason]
    CLOSE_REASON_IDLE: _ClassVar[CloseReason]
    CLOSE_REASON_LIMIT: _ClassVar[CloseReason]
    CLOSE_REASON_SHUTDOWN: _ClassVar[CloseReason]
CLOSE_REASON_UNSPECIFIED: CloseReason
CLOSE_REASON_ROOT_ENDED: CloseReason
CLOSE_REASON_IDLE: CloseReason
CLOSE_REASON_LIMIT: CloseReason
CLOSE_REASON_SHUTDOWN: CloseReason

class CompletedTrace(_message.Message):
    __slots__ = ("trace_id", "spans", "logs", "reason", "fragment", "session_end", "session_id", "case_id", "trial")
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_END_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CASE_ID_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trace_id: bytes
    spans: bytes
    logs: bytes
    reason: CloseReason
    fragment: bool
    session_end: bool
    session_id: str
    case_id: str
    trial: str
    def __init__(self, trace_id: _Optional[bytes] = ..., spans: _Optional[bytes] = ..., logs: _Optional[bytes] = ..., reason: _Optional[_Union[CloseReason, str]] = ..., fragment: bool = ..., session_end: bool = ..., session_id: _Optional[str] = ..., case_id: _Optional[str] = ..., trial: _Optional[str] = ...) -> None: ...

class SubmitTracesRequest(_message.Message):
    __slots__ = ("traces",)
    TRACES_FIELD_NUMBER: _ClassVar[int]
    traces: _containers.RepeatedCompositeFieldContainer[CompletedTrace]
    def __init__(self, traces: _Optional[_Iterable[_Union[CompletedTrace, _Mapping]]] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("trace_id", "reason")
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    trace_id: bytes
    reason: str
    def __init__(self, trace_id: _Optional[bytes] = ..., reason: _Optional[str] = ...) -> None: ...

class SubmitTracesResponse(_message.Message):
    __slots__ = ("accepted", "rejected")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    rejected: _containers.RepeatedCompositeFieldContainer[Rejection]
    def __init__(self, accepted: _Optional[int] = ..., rejected: _Optional[_Iterable[_Union[Rejection, _Mapping]]] = ...) -> None: ...
