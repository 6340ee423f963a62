import { type StartOptions, startSandbox, type TestSandbox } from './testing.ts';

type Use<Value> = (value: Value) => Promise<void>;

/** The fixtures of a test. */
export interface SandboxContext {
  /** The worker's sandbox, in the state in which the previous test left it. */
  readonly startedSandbox: TestSandbox;
  /** The same, in the state after its start. */
  readonly sandbox: TestSandbox;
}

/** A fixture as vitest and Playwright accept it: for the whole worker, or for each test. */
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
 * Fixtures for `test.extend`: one sandbox for each worker, `startedSandbox`, which every test that uses `sandbox` gets
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
