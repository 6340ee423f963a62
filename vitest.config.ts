import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const testing = join(import.meta.dirname, 'src', 'testing');

/** Those that take longest although they are short. */
const longest = new Set(
  [
    'test/simulation/simulation.test.ts',
    'test/adversary/adversary.test.ts',
    'test/generated-clients/generated-clients.test.ts',
    'test/integration/audit/every-change.test.ts',
    'test/integration/chains/known-transactions.test.ts',
    'test/integration/chains/precompiles.test.ts',
    'test/integration/clients/clients.test.ts',
    'test/integration/clients/readmes.test.ts',
    'test/integration/guides/guides.test.ts',
    'test/integration/packaging/compile-cache.test.ts',
    'test/integration/processes/workers.test.ts',
    'test/integration/sending/kill.test.ts',
    'test/integration/wallet-actions/kill.test.ts',
    'test/integration/webhooks/kill.test.ts',
    'test/property/equal-to-anvil.test.ts',
    'test/unit/simulation/run-seeds.test.ts',
  ].map((file) => join(import.meta.dirname, file)),
);

/**
 * Vitest begins with the largest files where it has measured none, as in CI. Then the simulation came last, and one worker
 * had nothing to do for as long as it takes.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLongest = ({ moduleId }: TestSpecification): boolean => longest.has(moduleId);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig({
  resolve: {
    alias: [
      { find: /^custos\/testing$/, replacement: join(testing, 'testing.ts') },
      { find: /^custos\/testing\/(\w+)$/, replacement: join(testing, '$1.ts') },
    ],
  },
  test: {
    // The example, and the tests that `custos init vitest` writes, run with the library as it is here.
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts', 'templates/vitest/**/*.test.mts'],
    globalSetup: [
      'test/install-judges.ts',
      'test/temporary-files.ts',
      'test/support/postgres/postgres-on-demand.ts',
      'test/ledger/global-setup.ts',
      'test/unstable-tests.ts',
    ],
    setupFiles: [
      'test/repeatable-properties.ts',
      'test/ledger/setup-file.ts',
      'test/support/postgres/return-databases.ts',
      'test/support/processes/end-with-file.ts',
    ],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // A test that fails is repeated once, and listed if it passes then: see `test/README.md`, "Time".
    retry: process.env.TEST_LONG === '1' ? 0 : 1,
    // The default of one second fails while the machine starts other servers.
    expect: { poll: { timeout: 20_000 } },
    // For two cores: a test waits for other processes a quarter of its time, so a third worker has something to do.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // The files of a worker share its modules, which takes less than half the time; a file leaves nothing behind in them.
    isolate: false,
    // Servers of tests live longer than a small young generation. 128 MB take 8 % less CPU than 64 in `test/contract`.
    execArgv: ['--max-semi-space-size=128'],
  },
});
