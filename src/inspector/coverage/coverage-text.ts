import type { SandboxCoverageFigure, SandboxCoverageOperation } from '../../sandbox/generated/schemas.ts';

/** A share, rounded down so that 100 % means all: `12 of 169, 7.1 %`. */
export function shareText({ covered, total }: Pick<SandboxCoverageFigure, 'covered' | 'total'>): string {
  const percent = total === 0 ? 100 : Math.floor((covered / total) * 1000) / 10;
  return `${covered} of ${total}, ${percent} %`;
}

/** Operations that were called, or not, or all; those with the most requests first. */
export function shownOperations(
  operations: readonly SandboxCoverageOperation[],
  { text, which }: { readonly text: string; readonly which: string },
): SandboxCoverageOperation[] {
  const wanted = text.trim().toLowerCase();
  return operations
    .filter(({ operation }) => operation.toLowerCase().includes(wanted))
    .filter(({ requests }) => which === 'all' || (which === 'called') === requests > 0)
    .sort((a, b) => b.requests - a.requests || a.operation.localeCompare(b.operation));
}
