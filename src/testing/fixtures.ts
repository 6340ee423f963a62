import { type StartOptions, startSandbox, type TestSandbox } from './testing.ts';

type Use<Value> = (value: Value) => Promise<void>;

/** The fixtures that a test can use. */
export interface SandboxContext {
  /** The worker's sandbox, as the previous test left it. */
  readonly startedSandbox: TestSandbox;
  /** The worker's sandbox, reset to the state after its start. */
  readonly sandbox: TestSandbox;
}

/** The fixtures in the form that vitest and Playwright accept: one per worker, one per test. */
export interface SandboxFixtures {
  readonly startedSandbox: [
    (context: object, use: Use<TestSandbox>) => Promise<void>,
    { readonly scope: 'worker' },
  ];
  readonly sandbox: (
    context: { readonly startedSandbox: TestSandbox },
    use: Use<TestSandbox>,
  ) => Promise<void>;
}

/**
 * Returns fixtures for `test.extend`. Each worker has one sandbox, `startedSandbox`. A test that uses `sandbox` gets
 * the same sandbox after a reset to the state after its start.
 *
 * In vitest: `const test = base.extend<SandboxContext>(sandboxFixtures({ seed: 'shop' }))`. In Playwright, also set
 * `use: { ignoreHTTPSErrors: true }` for pages of the sandbox.
 */
export function sandboxFixtures(options: StartOptions = {}): SandboxFixtures {
  return {
    startedSandbox: [
      // Both runners read the names of the fixtures that this one needs from its first parameter.
      // biome-ignore lint/correctness/noEmptyPattern: none.
      async ({}, use) => {
        await using sandbox = await startSandbox(options);
        await use(sandbox);
      },
      { scope: 'worker' },
    ],
    sandbox: async ({ startedSandbox }, use) => {
      await startedSandbox.reset();
      await use(startedSandbox);
    },
  };
}
