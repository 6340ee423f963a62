/** How often events of a type were recorded and acknowledged. */
interface EventCount {
  readonly type: string;
  readonly recorded: number;
  readonly acknowledged: number;
}

/** What requests used of everything that the contract offers. */
export interface MeasuredCoverage {
  readonly requests: number;
  /** To no operation of the contract. */
  readonly unknownRequests: number;
  /** Answers that the contract does not document. */
  readonly undocumented: readonly { readonly name: string; readonly count: number }[];
  readonly figures: readonly {
    readonly dimension: string;
    readonly title: string;
    readonly covered: number;
    readonly total: number;
  }[];
  /** `operation`: undefined for events and decisions. */
  readonly rows: readonly {
    readonly dimension: string;
    readonly name: string;
    readonly operation: string | undefined;
    readonly count: number;
  }[];
}

/** `entries`: of an HTTP Archive. */
export type MeasureCoverage = (
  entries: readonly unknown[],
  eventCounts: readonly EventCount[],
) => Promise<MeasuredCoverage>;
