"""Machine code: loops are found, and what they consist of."""

from __future__ import annotations

from collections import Counter

from perfport.untimed.machine_code import loops, outline

CODE = """
	.section	.text.pass,"ax",@progbits
pass:
.text.pass:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_2:
        /*0010*/                   LDG.E.64 R2, desc[UR4][R2.64] ;
        /*0020*/              @!P0 BRA `(.L_x_4) ;
.L_x_1:
        /*0030*/                   IMMA.16832.U8.U8 R4, R8.ROW, R2.COL, R4 ;
        /*0040*/             @!UP1 UIADD3 UR5, UR5, 0x1, URZ ;
        /*0050*/               @P1 BRA `(.L_x_1) ;
.L_x_4:
        /*0060*/                   ATOMS.ADD RZ, [R3+0x80], R4 ;
        /*0070*/                   BRA.U !UP0, `(.L_x_2) ;
        /*0080*/                   EXIT ;
.L_x_5:
        /*0090*/                   BRA `(.L_x_5);
"""


def test_a_loop_is_what_a_branch_to_an_earlier_label_spans() -> None:
    inner, outer = loops(CODE)
    assert (inner.kernel, inner.label, inner.kinds) == ("pass", ".L_x_1", Counter(IMMA=1, UIADD3=1, BRA=1))
    assert (outer.label, outer.kinds) == (".L_x_2", Counter(LDG=1, BRA=3, IMMA=1, UIADD3=1, ATOMS=1))


def test_loops_are_outlined_as_comments() -> None:
    first, second = outline(CODE).splitlines()
    assert first == "// pass, loop at .L_x_1: 3 instructions: IMMA 1, UIADD3 1, BRA 1"
    assert second.startswith("// pass, loop at .L_x_2: 7 instructions: BRA 3, ")
    assert outline("nothing to see\n") == ""
