/** How a figure is measured. */
type Measurement =
  /** Test files in their long form. */
  | {
      readonly by: 'tests';
      /** None: all. */
      readonly files: readonly string[];
      readonly filter?: string;
      /** In their short form. */
      readonly isShort?: boolean;
    }
  /** A program of ours that writes its result as JSON; `%size` and `%out` are filled in. */
  | { readonly by: 'program'; readonly args: readonly string[] }
  /** Cases of the bench; the outcome is those of their goals that have the id `figure`. */
  | { readonly by: 'bench'; readonly cases: readonly string[]; readonly flags?: readonly string[] };

/** A figure that we answer for. */
export interface Figure {
  readonly name: string;
  readonly title: string;
  /** What must come out. */
  readonly aim: string;
  /** What is counted, and how many the long form does. */
  readonly size?: { readonly unit: string; readonly long: number };
  /** Whether it measures time, which other work on the machine falsifies. */
  readonly isTimed?: boolean;
  readonly measurement: Measurement;
}

const tests = (files: readonly string[], filter?: string): Measurement & { readonly by: 'tests' } => ({
  by: 'tests',
  files: files.map((file) => `test/${file}`),
  ...(filter === undefined ? {} : { filter }),
});

/** All figures, as the page shows them. */
export const figures: readonly Figure[] = [
  {
    name: 'contract',
    title:
      'Documented statuses, error codes and events that the whole suite exercises; every answer is validated',
    aim: '100 %, less the list in test/house/uncovered.txt, of which each line has its reason',
    measurement: { by: 'tests', files: [], isShort: true },
  },
  {
    name: 'inputs',
    title: 'Invalid requests to every operation that has parameters or a body',
    aim: '0 answers with 5xx, 0 bodies accepted that the document refuses, every answer as documented',
    size: { unit: 'requests', long: 1_000_000 },
    measurement: tests(['contract/every-operation/input-sweep.test.ts']),
  },
  {
    name: 'kills',
    title: 'kill -9 of a sandbox during requests',
    aim: '0 acknowledged changes lost, 0 half done; a retry with the same key changes nothing twice',
    size: { unit: 'kills', long: 1000 },
    measurement: tests(['integration/kill.test.ts']),
  },
  {
    name: 'power-cuts',
    title: 'Power cuts: the write-ahead log of SQLite ends anywhere, or with noise',
    aim: 'the database opens, is intact, and has exactly the transactions whose frames survived; each commit is synced before its answer',
    size: { unit: 'cuts', long: 20_000 },
    measurement: tests(['integration/storage/power-cut.test.ts']),
  },
  {
    name: 'webhooks',
    title: 'Webhooks to an endpoint that fails three times in ten, while the sender is killed 50 times',
    aim: '0 lost, order kept for each resource, every signature accepted by two libraries; on both databases',
    size: { unit: 'events', long: 100_000 },
    measurement: tests(['integration/webhooks/kill.test.ts']),
  },
  {
    name: 'idempotency',
    title: 'Storms of 50 concurrent requests with one idempotency key',
    aim: '1 effect; identical answers, or refused while the first is in progress; another body under the same key is refused; on both databases',
    size: { unit: 'storms', long: 1000 },
    measurement: tests(['integration/processes/idempotency-storms.test.ts']),
  },
  {
    name: 'simulation',
    title: 'Simulated servers: crashes, lost commits, full disks, lying nodes, from one seed each',
    aim: 'every invariant of money, ownership, events and the audit log after each step; no failing seed',
    size: { unit: 'seeds of 200 steps', long: 100_000 },
    measurement: {
      by: 'program',
      args: [
        'test/simulation/main.ts',
        '--seeds',
        '%size',
        '--steps',
        '200',
        '--minutes',
        '%minutes',
        '--out',
        '%out',
      ],
    },
  },
  {
    name: 'audit',
    title:
      'An exported audit log of 10,000 records with a byte changed, or a record dropped, swapped or inserted',
    aim: 'every change is found',
    size: { unit: 'changes of each kind', long: 2000 },
    measurement: tests(['integration/audit/export.test.ts'], 'reveals'),
  },
  {
    name: 'hanging-endpoints',
    title: '200 webhook endpoints that accept connections and never answer, beside one that works',
    aim: 'the working endpoint receives its events as if the others were not there',
    size: { unit: 'endpoints', long: 200 },
    measurement: tests(['integration/webhooks/hanging-endpoints.test.ts']),
  },
  {
    name: 'take-over',
    title: 'kill -9 of one of two servers on one PostgreSQL: how long its work waits for the other',
    aim: 'less than 8 s; the work of a server that is alive is not taken over',
    size: { unit: 'kills', long: 10 },
    isTimed: true,
    measurement: tests(['integration/processes/killed-process.test.ts']),
  },
  {
    name: 'nodes',
    title: 'Slow, lagging and lying chain nodes',
    aim: 'no payment twice, none reported that did not happen',
    measurement: tests(['integration/chains/distrusted-nodes.test.ts', 'property/sent-money.test.ts']),
  },
  {
    name: 'judges',
    title: 'Signatures and addresses of random wallets, judged by the libraries of each chain',
    aim: '0 refused, 0 different addresses',
    size: { unit: 'wallets of each library', long: 10_000 },
    measurement: tests(['unit/signing/judges']),
  },
  {
    name: 'policies',
    title: 'Random policies and requests against an independent model',
    aim: '0 disagreements',
    size: { unit: 'pairs', long: 10_000_000 },
    measurement: tests(['property/policy.test.ts']),
  },
  {
    name: 'equal-to-anvil',
    title:
      'The same random transactions among random contracts, and 200 of the kinds that are sent most, on a simulated EVM chain and on anvil',
    aim: '0 differences in results, receipts, logs, gas, traces, storage and balances, except those that the test names',
    size: { unit: 'transactions', long: 5_000 },
    measurement: tests(['property/equal-to-anvil.test.ts', 'integration/chains/known-transactions.test.ts']),
  },
  {
    name: 'histories',
    title: 'Concurrent signatures, changes and rejections of intents',
    aim: 'every outcome is that of some order',
    size: { unit: 'rounds of each history', long: 300 },
    measurement: tests(['integration/intents/at-once.test.ts', 'property/intents.test.ts']),
  },
  {
    name: 'authorization',
    title: 'Every operation with credentials that are absent, wrong, of another app, expired or replayed',
    aim: '0 wrong answers; ids of other apps are answered like unknown ones',
    measurement: tests(['contract/authorization/matrix.test.ts', 'contract/every-operation/guards.test.ts']),
  },
  {
    name: 'addresses',
    title: 'Webhook URLs that lead to private addresses, also by redirects and name servers',
    aim: '0 reached',
    measurement: tests(['unit/adapters/public-address.test.ts', 'unit/adapters/webhook-http.test.ts']),
  },
  {
    name: 'vectors',
    title: 'Published vectors of signature schemes, key derivation and encryption',
    aim: '0 wrong',
    // Their long forms try random inputs; the vectors are the same in the short ones.
    measurement: {
      ...tests([
        ...[
          'canonical-json',
          'derivation',
          'hpke',
          'p256',
          'signature-schemes',
          'tlog',
          'webhook-signature',
        ].map((name) => `unit/crypto/${name}.test.ts`),
        ...['unit/signing/vectors.test.ts', 'unit/signing/chains.test.ts'],
      ]),
      isShort: true,
    },
  },
  {
    name: 'offline',
    title: 'A sandbox where only the loopback exists',
    aim: 'it starts and signs; strace sees no connection to another machine',
    measurement: tests(['integration/packaging/offline.test.ts']),
  },
  {
    name: 'steady-load',
    title: 'Load on a sandbox for half an hour, every check on',
    aim: '0 failures; memory grows by less than 10 % after the first sixth',
    size: { unit: 'minutes', long: 30 },
    isTimed: true,
    measurement: {
      by: 'program',
      args: ['bench/steady-load.ts', '--minutes', '%size', '--out', '%out'],
    },
  },
  {
    name: 'overload',
    title: 'Five times the load that the server can take',
    aim: 'admitted requests take at most twice as long, the others are answered with 503 and a Retry-After, none with 500; 2 s later the server works as before',
    isTimed: true,
    measurement: { by: 'bench', cases: ['overload'] },
  },
  {
    name: 'held-load',
    title:
      'Writes, reads and signed requests a second on SQLite and PostgreSQL, every check on, for a minute each',
    aim: 'SQLite over HTTPS: 4,000 reads and 1,500 writes; PostgreSQL: 1,000 writes; 800 that two of three keys have signed; all but one in a hundred within 50 ms',
    isTimed: true,
    measurement: { by: 'bench', cases: ['held-load'], flags: ['--rounds', '3', '--seconds', '20'] },
  },
  {
    name: 'start-up',
    title: 'Start of a sandbox, and reset and snapshots of 10,000 wallets',
    aim: 'each of 20 starts to the first 200 in 1 s; a reset in 20 ms, saving and loading in 50 ms',
    isTimed: true,
    measurement: { by: 'bench', cases: ['start-up', 'snapshots'], flags: ['--starts', '20'] },
  },
  {
    name: 'rpc-attacks',
    title:
      'Endless executions, long batches, deep and oversized messages over JSON-RPC of a simulated EVM chain',
    aim: 'each is refused or ended, and holds the event loop for at most 50 ms at a time',
    isTimed: true,
    measurement: { by: 'bench', cases: ['rpc-attacks'] },
  },
];
