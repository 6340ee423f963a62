import { alice, bob, carol } from './caller.ts';
import { matchersFor } from './matchers.ts';
import { type StartOptions, startSandbox, type TestSandbox } from './testing.ts';

/** The arguments that jest passes to an environment and that this environment reads. */
interface EnvironmentConfig {
  readonly projectConfig: { readonly testEnvironmentOptions: { readonly custos?: StartOptions } };
}

/** Jest's environment for Node.js, which this environment extends. */
interface NodeEnvironment {
  readonly global: Record<string, unknown>;
  setup(): Promise<void>;
  teardown(): Promise<void>;
}

// The package is part of the users' jest.
const environmentOfNode = 'jest-environment-node';
const { TestEnvironment: NodeEnvironment } = (await import(environmentOfNode)) as {
  TestEnvironment: new (config: EnvironmentConfig, context: unknown) => NodeEnvironment;
};

/**
 * A jest environment with a sandbox for each test file. Every test gets the sandbox in the state after its start. Its
 * tests have the globals
 * `sandbox`, `alice`, `bob`, `carol` and `sandboxMatchers`. `testEnvironmentOptions.custos` are the options of
 * `startSandbox`.
 */
class TestEnvironment extends NodeEnvironment {
  readonly #options: StartOptions;
  #sandbox: TestSandbox | undefined;

  constructor(config: EnvironmentConfig, context: unknown) {
    super(config, context);
    this.#options = config.projectConfig.testEnvironmentOptions.custos ?? {};
  }

  override async setup(): Promise<void> {
    await super.setup();
    this.#sandbox = await startSandbox(this.#options);
    const sandboxMatchers = matchersFor(this.#options.prefix ?? 'service');
    Object.assign(this.global, { sandbox: this.#sandbox, sandboxMatchers, alice, bob, carol });
  }

  override async teardown(): Promise<void> {
    await this.#sandbox?.close();
    await super.teardown();
  }

  /** Jest calls it before any part of a test runs. */
  async handleTestEvent({ name }: { readonly name: string }): Promise<void> {
    if (name === 'test_start') await this.#sandbox?.reset();
  }
}

// biome-ignore lint/style/noDefaultExport: jest loads environments by it.
export { TestEnvironment as default };
