/** A seed that has failed once. */
interface Regression {
  readonly seed: string;
  readonly steps: number;
  /** What was wrong. */
  readonly found: string;
}

/**
 * Seeds that failed before a repair, which all runs repeat. A change of the workload or of its weights gives a seed
 * another story, so each repair has a small test of its own as well.
 */
export const regressions: readonly Regression[] = [
  { seed: '10', steps: 60, found: 'the event of a denial was committed before its audit record' },
  {
    seed: '2061',
    steps: 170,
    found: 'what was left of a crashed process called a chain in its open transaction',
  },
  {
    seed: '846',
    steps: 200,
    found: 'transactions waited behind the nonce of one that was never sent',
  },
  {
    seed: '131',
    steps: 200,
    found: 'the model missed a change of a card that began and ended during another one',
  },
  ...['17443', '56827'].map((seed) => ({
    seed,
    steps: 200,
    found: 'the transaction of a beat of the process was taken for that of the delivery beside it',
  })),
  ...['29594', '33641', '36834'].map((seed) => ({
    seed,
    steps: 200,
    found: 'transactions were sent before one with a lower nonce, which then ended unsent',
  })),
  {
    seed: '200018',
    steps: 200,
    found: 'of transactions that wait for one another, each round sent only one',
  },
];
