import type { SandboxCoverageOperation } from '../../sandbox/generated/schemas.ts';

/**
 * A cell of the map: a documented status with its count, which may be 0, or undefined if the status is not
 * documented.
 */
type CoverageCell = { readonly count: number } | undefined;

export interface CoverageMap {
  /** The statuses that any operation documents, in ascending order. */
  readonly statuses: readonly string[];
  readonly rows: readonly { readonly operation: string; readonly cells: readonly CoverageCell[] }[];
}

/** Arranges operations in rows and statuses in columns. */
export function coverageMap(operations: readonly SandboxCoverageOperation[]): CoverageMap {
  const statuses = [...new Set(operations.flatMap(({ statuses: own }) => Object.keys(own)))].sort();
  const rows = operations.map(({ operation, statuses: own }) => ({
    operation,
    cells: statuses.map((status) => {
      const count = own[status];
      return count === undefined ? undefined : { count };
    }),
  }));
  return { statuses, rows };
}

/** Returns how strongly to color a cell, from 0 for never used to 4 for a hundred times or more. */
export function strengthOf(count: number): 0 | 1 | 2 | 3 | 4 {
  if (count === 0) return 0;
  if (count < 3) return 1;
  if (count < 10) return 2;
  return count < 100 ? 3 : 4;
}
