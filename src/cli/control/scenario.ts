import { Command } from 'commander';
import type { SandboxScenarioRun } from '../../client/scenarios.ts';
import { addSandboxClientOptions, type SandboxClientFlags, withSandbox } from '../sandbox-options.ts';

const examples = `
Examples:
  $ custos scenario list
  $ custos scenario run quorum-short
  $ custos scenario run webhook-down-5-days --json`;

/** `custos scenario …`: unhappy paths in a running sandbox. */
export function scenarioCommand(): Command {
  const scenario = new Command('scenario')
    .description('set up an unhappy path in a running sandbox')
    .addHelpText('after', examples);
  scenario.addCommand(listCommand());
  scenario.addCommand(runCommand());
  return scenario;
}

function listCommand(): Command {
  return addSandboxClientOptions(new Command('list').description('print the scenarios'))
    .addHelpText('after', examples)
    .action((flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const { listScenarios } = await import('../../client/scenarios.ts');
        for (const scenario of await listScenarios(client)) {
          const { name, summary } = scenario;
          console.log(flags.json === true ? JSON.stringify(scenario) : `${name.padEnd(20)}  ${summary}`);
        }
      }),
    );
}

function runCommand(): Command {
  return addSandboxClientOptions(
    new Command('run')
      .description('run a scenario, and print what happened and what to try next')
      .argument('<name>', 'name of the scenario'),
  )
    .addHelpText('after', examples)
    .action((name: string, flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const { runScenario } = await import('../../client/scenarios.ts');
        const played = await runScenario(client, name);
        console.log(flags.json === true ? JSON.stringify(played) : report(played));
      }),
    );
}

function report({ summary, resources, steps, try_next: commands }: SandboxScenarioRun): string {
  return [
    summary,
    '',
    ...resources.map(({ type, id }) => `  ${type.padEnd(18)}  ${id}`),
    '',
    ...steps.map(({ summary: done, status, code }, index) => {
      const outcome = code === null ? (status === null ? '' : `  ${status}`) : `  ${status} ${code}`;
      return `  ${index + 1}. ${done}${outcome}`;
    }),
    '',
    'Try next:',
    ...commands.map((command) => `  $ ${command}`),
  ].join('\n');
}
