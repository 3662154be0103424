"""`mutad-opt`: run any pass on textual IR, as `xdsl-opt` does, ours included."""

from __future__ import annotations

from xdsl.xdsl_opt_main import xDSLOptMain

from mutad.compiler.pipeline import PASSES
from mutad.dialects.activation import Activation
from mutad.dialects.ad import Ad
from mutad.dialects.array import Array
from mutad.dialects.foreign import Foreign
from mutad.dialects.special import Special


class MutadOpt(xDSLOptMain):
    """`xdsl-opt` that also knows our dialects and passes."""

    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for dialect in (Array, Ad, Foreign, Activation, Special):
            self.ctx.register_dialect(dialect.name, lambda d=dialect: d)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for p in PASSES:
            self.register_pass(p.name, lambda p=p: p)


def main() -> None:
    MutadOpt("mutad's optimizer driver").run()


if __name__ == "__main__":
    main()
