import type { FixtureOptions } from './fixtures.ts';
import { keptFile } from './keep.ts';
import { matchersFor } from './matchers.ts';
import { alice, bob, carol, startSandbox, type TestSandbox } from './testing.ts';

/** The part of jest's arguments that this environment reads. */
interface EnvironmentConfig {
  readonly projectConfig: { readonly testEnvironmentOptions: { readonly custos?: FixtureOptions } };
}

interface EnvironmentContext {
  readonly testPath: string;
}

/** The part of jest's tests that this environment reads. */
interface JestTest {
  readonly name: string;
  readonly errors: readonly unknown[];
  readonly parent?: JestGroup;
}

interface JestGroup {
  readonly name: string;
  /** The group that has no parent contains the whole file. */
  readonly parent?: JestGroup;
}

/** The part of jest's environment for Node.js that this environment uses. */
interface NodeEnvironment {
  readonly global: Record<string, unknown>;
  setup(): Promise<void>;
  teardown(): Promise<void>;
}

// The import's name is a variable, because the package belongs to the user's jest and is not a dependency of this one.
const environmentOfNode = 'jest-environment-node';
const { TestEnvironment: NodeEnvironment } = (await import(environmentOfNode)) as {
  TestEnvironment: new (config: EnvironmentConfig, context: EnvironmentContext) => NodeEnvironment;
};

/**
 * A jest environment with one sandbox per test file. Every test gets the sandbox in the state after its start. Tests
 * have the globals `sandbox`, `alice`, `bob`, `carol` and `sandboxMatchers`. `testEnvironmentOptions.custos` are the
 * options of `startSandbox`, and `keepOnFailure`.
 */
class TestEnvironment extends NodeEnvironment {
  readonly #options: FixtureOptions;
  readonly #testFile: string;
  #sandbox: TestSandbox | undefined;

  constructor(config: EnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    this.#testFile = context.testPath;
    this.#options = config.projectConfig.testEnvironmentOptions.custos ?? {};
  }

  override async setup(): Promise<void> {
    await super.setup();
    const { keepOnFailure: _, ...options } = this.#options;
    this.#sandbox = await startSandbox(options);
    const sandboxMatchers = matchersFor(this.#options.prefix ?? 'service');
    Object.assign(this.global, { sandbox: this.#sandbox, sandboxMatchers, alice, bob, carol });
  }

  override async teardown(): Promise<void> {
    await this.#sandbox?.close();
    await super.teardown();
  }

  /** Called by jest before each phase of a test. */
  async handleTestEvent({ name, test }: { readonly name: string; readonly test?: JestTest }): Promise<void> {
    if (name === 'test_start') await this.#sandbox?.reset();
    const { keepOnFailure = false } = this.#options;
    if (name !== 'test_done' || test === undefined || test.errors.length === 0 || keepOnFailure === false)
      return;
    const names = [test.name];
    for (let group = test.parent; group?.parent !== undefined; group = group.parent)
      names.unshift(group.name);
    const file = keptFile(keepOnFailure, this.#testFile, names);
    await this.#sandbox?.keep(file);
    process.stderr.write(`custos: kept what the test did; see it with \`npx custos inspect ${file}\`\n`);
  }
}

// biome-ignore lint/style/noDefaultExport: jest loads environments by it.
export { TestEnvironment as default };
