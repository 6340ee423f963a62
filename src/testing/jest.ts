import { alice, bob, carol } from './caller.ts';
import { matchersFor } from './matchers.ts';
import { type StartOptions, startSandbox, type TestSandbox } from './testing.ts';

/** The part of jest's arguments that this environment reads. */
interface EnvironmentConfig {
  readonly projectConfig: { readonly testEnvironmentOptions: { readonly custos?: StartOptions } };
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
  TestEnvironment: new (config: EnvironmentConfig, context: unknown) => NodeEnvironment;
};

/**
 * A jest environment with one sandbox per test file. Every test gets the sandbox in the state after its start. Tests
 * have the globals `sandbox`, `alice`, `bob`, `carol` and `sandboxMatchers`. `testEnvironmentOptions.custos` are the
 * options of `startSandbox`.
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

  /** Called by jest before each phase of a test. */
  async handleTestEvent({ name }: { readonly name: string }): Promise<void> {
    if (name === 'test_start') await this.#sandbox?.reset();
  }
}

// biome-ignore lint/style/noDefaultExport: jest loads environments by it.
export { TestEnvironment as default };
