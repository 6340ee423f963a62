import { relative } from 'node:path';
import type { TestProject } from 'vitest/node';

const root = import.meta.dirname;

/**
 * A vitest global setup. At the end of a run it lists the tests that failed and then passed when they were repeated, with
 * what had failed.
 */
export function setup({ vitest }: TestProject): () => void {
  return () => {
    const unstable = vitest.state
      .getTestModules()
      .flatMap((module) =>
        [...module.children.allTests()].flatMap((each) =>
          each.diagnostic()?.flaky === true
            ? [
                `  ${relative(root, module.moduleId)} > ${each.fullName}`,
                ...(each.result().errors ?? []).map(({ message }) => `    ${message.split('\n', 1)[0]}`),
              ]
            : [],
        ),
      );
    if (unstable.length === 0) return;
    const lines = ['', 'UNSTABLE: these tests failed, and passed when they were repeated:', ...unstable];
    process.stdout.write(`${lines.join('\n')}\n`);
  };
}
