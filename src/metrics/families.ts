export type Labels = Readonly<Record<string, string>>;

/** A value of a counter or a gauge. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** The observations of a histogram with one set of labels. */
export interface Distribution {
  readonly labels: Labels;
  /** Per bucket, not cumulative; one more than there are bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

interface FamilyHead {
  readonly name: string;
  readonly help: string;
}

/** All values of one metric at one moment: plain data, so that those of several processes can be sent and added up. */
export type Family = FamilyHead &
  (
    | {
        readonly type: 'counter' | 'gauge';
        readonly samples: readonly Sample[];
        /** Of several processes the largest value counts, because each reads the same thing. Default: they are added. */
        readonly across?: 'max';
      }
    | {
        readonly type: 'histogram';
        /** The upper bounds of the buckets; the last bucket has none. */
        readonly bounds: readonly number[];
        readonly distributions: readonly Distribution[];
      }
  );
