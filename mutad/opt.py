"""`mutad-opt`: run any pass on textual IR, as `xdsl-opt` does, ours included."""

from __future__ import annotations

from argparse import ArgumentParser

from xdsl.dialects.builtin import ModuleOp
from xdsl.xdsl_opt_main import xDSLOptMain

from mutad.compiler.pipeline import PASSES
from mutad.compiler.print_ir import module_text
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

    def register_all_arguments(self, arg_parser: ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument(
            "--no-locs",
            action="store_true",
            help="Print no locations, not those that the input has",
        )

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """IR with the locations that it has, unless the options ask for another print."""
        args = self.args
        if args.print_debuginfo or args.syntax_highlight or args.target != "mlir":
            return super().output_resulting_program(prog)
        text = module_text(
            prog,
            not args.no_locs,
            self.ctx.loaded_dialects,
            print_generic_format=args.print_op_generic,
            print_properties_as_attributes=args.print_no_properties,
        )
        return f"{text}\n"


def main() -> None:
    MutadOpt("mutad's optimizer driver").run()


if __name__ == "__main__":
    main()
