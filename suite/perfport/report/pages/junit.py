"""The findings of `perfport check` as JUnit, which test reports of CI systems read: XML 1.0, whatever names hold."""

from __future__ import annotations

import io

from junitparser import Attr, Failure, JUnitXml, Skipped, TestCase, TestSuite

from ...model.untrusted import distinct_line, line
from ...nightly.finding import Colour, Finding, Judgement, Outcome
from ..parts.quantities import interval, seconds


class _Case(TestCase):
    """A test case whose time is written without an exponent, which the schema of JUnit does not allow."""

    time = Attr()


def junit(judgement: Judgement) -> str:
    """Return the findings as JUnit: what is red is a failure, what is yellow or has no verdict is skipped.

    A test case of its own says whether enough cases have a verdict; it is skipped where they have not.
    """
    suite = TestSuite(line(f"perfport check {judgement.run.name}"))
    suite.add_testcase(_judged(judgement))
    for finding in judgement.findings:
        suite.add_testcase(_case(finding))
    report = JUnitXml()
    report.add_testsuite(suite)
    report.update_statistics()
    written = io.BytesIO()
    report.write(written, pretty=True)
    return written.getvalue().decode()


def _judged(judgement: Judgement) -> TestCase:
    case = _Case("enough cases have a verdict", "perfport.check")
    case.time = "0"
    if judgement.undecided:
        case.result = [Skipped(line(f"yellow: {judgement.undecided}"))]
    return case


def _case(finding: Finding) -> TestCase:
    place = finding.place
    case = _Case(distinct_line(f"{place.title} on {place.site}"), line(f"{place.workload}.{place.problem}"))
    case.time = f"{finding.now or 0:.9f}"
    message = line(f"{finding.outcome.value}: {finding.why}")
    if finding.colour is Colour.RED:
        failure = Failure(message, finding.outcome.value)
        failure.text = _numbers(finding)
        case.result = [failure]
    elif finding.colour is Colour.YELLOW:
        case.result = [Skipped(f"yellow: {message}")]
    elif finding.outcome not in (Outcome.SAME, Outcome.FASTER, Outcome.SLOWER):
        case.result = [Skipped(message)]
    return case


def _numbers(finding: Finding) -> str:
    if finding.ratio is None:
        return line(finding.why)
    ratio, threshold = interval(finding.ratio, 3), f"{finding.threshold:g}"
    return f"before {seconds(finding.before)}, now {seconds(finding.now)}, times faster {ratio}, threshold {threshold}"
