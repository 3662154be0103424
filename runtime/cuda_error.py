"""What the driver of a device refuses."""


class CudaError(RuntimeError):
    """The driver of a device has refused something. `code` is its number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
