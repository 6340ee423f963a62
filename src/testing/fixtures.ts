import { type StartOptions, startSandbox, type TestSandbox } from './testing.ts';

type Use<Value> = (value: Value) => Promise<void>;

/** The fixtures of a test. */
export interface SandboxContext {
  /** The worker's sandbox, in the state that the previous test left. */
  readonly startedSandbox: TestSandbox;
  /** The worker's sandbox, in the state after its start. */
  readonly sandbox: TestSandbox;
}

/** A fixture in the form that vitest and Playwright accept, for the whole worker or for each test. */
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
 * Fixtures for `test.extend`. Each worker has one sandbox, `startedSandbox`. Every test that uses `sandbox` gets it
 * in the state after its start.
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
