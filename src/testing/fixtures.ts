import { isInVitest } from '../config/client.ts';
import { keptFile } from './keep.ts';
import { type StartOptions, startSandbox, type TestSandbox } from './testing.ts';

type Use<Value> = (value: Value) => Promise<void>;

/** The fixtures that a test can use. */
export interface SandboxContext {
  /** The worker's sandbox, as the previous test left it. */
  readonly startedSandbox: TestSandbox;
  /** The worker's sandbox, reset to the state after its start. */
  readonly sandbox: TestSandbox;
}

/** How vitest describes the running test to a fixture. */
interface TestOfVitest {
  readonly task: {
    readonly name: string;
    readonly file: { readonly filepath: string };
    readonly result?: { readonly state: string } | undefined;
    readonly suite?: Suite | undefined;
  };
}

interface Suite {
  readonly name: string;
  readonly suite?: Suite | undefined;
}

/** How Playwright describes the running test to a fixture. */
interface TestOfPlaywright {
  readonly file: string;
  readonly titlePath: readonly string[];
  readonly status?: string | undefined;
  readonly expectedStatus: string;
  attach(name: string, options: { readonly path: string }): Promise<void>;
}

/** The options of the fixtures: those of the sandbox, and what happens after a test that failed. */
export interface FixtureOptions extends StartOptions {
  /**
   * Keeps what a failed test did in a folder, for `custos inspect`: the requests, the events and the whole state.
   * `true` is the folder `custos-failures`. Default: false.
   */
  readonly keepOnFailure?: boolean | string;
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
    ...info: never[]
  ) => Promise<void>;
}

/**
 * Returns fixtures for `test.extend`. Each worker has one sandbox, `startedSandbox`. A test that uses `sandbox` gets
 * the same sandbox after a reset to the state after its start.
 *
 * In vitest: `const test = base.extend<SandboxContext>(sandboxFixtures({ seed: 'shop' }))`. In Playwright, also set
 * `use: { ignoreHTTPSErrors: true }` for pages of the sandbox.
 */
export function sandboxFixtures({ keepOnFailure = false, ...options }: FixtureOptions = {}): SandboxFixtures {
  const keep: Keep = async (sandbox, testFile, names) => {
    if (keepOnFailure === false) return undefined;
    const file = keptFile(keepOnFailure, testFile, names);
    await sandbox.keep(file);
    process.stderr.write(`custos: kept what the test did; see it with \`npx custos inspect ${file}\`\n`);
    return file;
  };
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
    // Playwright refuses `task`, which is a fixture of vitest only.
    sandbox: isInVitest() ? ofVitest(keep) : ofPlaywright(keep),
  };
}

type Keep = (sandbox: TestSandbox, testFile: string, names: readonly string[]) => Promise<string | undefined>;

function ofVitest(keep: Keep): SandboxFixtures['sandbox'] {
  const fixture = async (
    { startedSandbox, task }: { readonly startedSandbox: TestSandbox } & TestOfVitest,
    use: Use<TestSandbox>,
  ): Promise<void> => {
    await startedSandbox.reset();
    await use(startedSandbox);
    await startedSandbox.collect();
    if (task.result?.state !== 'fail') return;
    const names = [task.name];
    for (let { suite } = task; suite !== undefined; suite = suite.suite) names.unshift(suite.name);
    await keep(startedSandbox, task.file.filepath, names);
  };
  return fixture as SandboxFixtures['sandbox'];
}

function ofPlaywright(keep: Keep): SandboxFixtures['sandbox'] {
  const fixture = async (
    { startedSandbox }: { readonly startedSandbox: TestSandbox },
    use: Use<TestSandbox>,
    info: TestOfPlaywright,
  ): Promise<void> => {
    await startedSandbox.reset();
    await use(startedSandbox);
    await startedSandbox.collect();
    if (info.status === info.expectedStatus) return;
    const path = await keep(startedSandbox, info.file, info.titlePath);
    if (path !== undefined) await info.attach('custos', { path });
  };
  return fixture as SandboxFixtures['sandbox'];
}
