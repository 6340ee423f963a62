import { Command } from 'commander';
import { asStarted, programName } from '../../config/client.ts';
import type { PlayedDocument, PlayedStep } from '../../tools/client/arazzo/run-document.ts';
import type { SandboxClient } from '../../tools/client/sandbox-client.ts';
import type { SandboxScenarioRun } from '../../tools/client/world.ts';
import {
  addSandboxClientOptions,
  collect,
  invalidOption,
  printSandboxList,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { withProgress } from '../shell/terminal.ts';

interface RunFlags extends SandboxClientFlags {
  input?: string[];
  workflow?: string;
}

const examples = `
Examples:
  $ custos scenario list
  $ custos scenario run quorum-short
  $ custos scenario run webhook-down-5-days --json
  $ custos scenario run refund.arazzo.yaml --input amount=25`;

const filesHelp = `
A file is an Arazzo 1.0 document, YAML or JSON: its steps call operations of the
API and of the control plane (setClock, addFault, …) with the credentials of the
sandbox; the extension x-sign-as lists the seeded users who sign a step. Exit
code: 0 if all steps succeeded, 1 if one failed, 2 if the file cannot be run.
`;

/** Returns the command `custos scenario …`, which runs failure scenarios in a running sandbox. */
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
    .action(async (flags: SandboxClientFlags) => {
      const { listScenarios } = await import('../../tools/client/world.ts');
      await printSandboxList(flags, listScenarios, {
        columns: [
          { title: 'name', text: ({ name }) => name, color: () => 'bold' },
          { title: 'what happens', text: ({ summary }) => summary, canBeCut: true },
        ],
      });
    });
}

function runCommand(): Command {
  return addSandboxClientOptions(
    new Command('run')
      .description('run a scenario, and print what happened and what to try next')
      .argument('<name|file>', 'name of a scenario, or an Arazzo document')
      .option('--input <name=value>', 'an input of a file, name:=json for other values; repeatable', collect)
      .option('--workflow <id>', 'only this workflow of a file, and those it depends on'),
  )
    .addHelpText('after', `${filesHelp}${examples}`)
    .action((name: string, flags: RunFlags) =>
      withSandbox(flags, async (client) => {
        const { isArazzoFile } = await import('../../tools/client/arazzo/run-document.ts');
        if (isArazzoFile(name)) return runFile(client, name, flags);
        if (flags.input !== undefined || flags.workflow !== undefined)
          throw invalidOption(`--input and --workflow: \`${name}\` is not a file`);
        const { runScenario } = await import('../../tools/client/world.ts');
        const played = await withProgress(`Running ${name}`, () => runScenario(client, name));
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
    ...commands.map((command) => `  $ ${command.replace(/^custos /, `${programName()} `)}`),
  ].join('\n');
}

async function runFile(client: SandboxClient, file: string, flags: RunFlags): Promise<void> {
  const [{ readArazzoFile }, { runDocument }] = await Promise.all([
    import('../../tools/client/arazzo/document.ts'),
    import('../../tools/client/arazzo/run-document.ts'),
  ]);
  const isJson = flags.json === true;
  const inputs = Object.fromEntries((flags.input ?? []).map(readInput));
  const played = await runDocument(client, readArazzoFile(file), {
    inputs,
    workflow: flags.workflow,
    onStep: (step) => void (isJson || console.log(lineOf(step))),
  });
  console.log(isJson ? JSON.stringify(played) : endOf(played));
  if (!played.succeeded) process.exitCode = 1;
}

function readInput(text: string): [string, unknown] {
  const [, name, mark, value = ''] = /^([\w.-]+)(:?=)(.*)$/s.exec(text) ?? [];
  if (name === undefined) throw invalidOption(`--input: expected name=value or name:=json, got \`${text}\``);
  if (mark === '=') return [name, value];
  try {
    return [name, JSON.parse(value)];
  } catch {
    throw invalidOption(`--input: expected JSON after \`${name}:=\`, got \`${value}\``);
  }
}

function lineOf({ workflow, step, summary, operation, status, code, failures, hint, ...rest }: PlayedStep) {
  const sent = [operation, status, code].filter((part) => part !== null).join(' ');
  const why = [
    ...failures,
    ...(failures.length > 0 && hint !== null ? [asStarted(hint)] : []),
    ...(failures.length > 0 && rest.request_id !== null ? [`${programName()} why ${rest.request_id}`] : []),
  ];
  const name = summary === step ? `${workflow} ${step}` : `${workflow} ${step}: ${summary}`;
  const lines = [
    `${failures.length === 0 ? 'ok    ' : 'failed'}  ${name}${sent === '' ? '' : `  (${sent})`}`,
  ];
  return [...lines, ...why.map((text) => `        ${text}`)].join('\n');
}

function endOf({ name, succeeded, steps, outputs }: PlayedDocument): string {
  const values = Object.entries(outputs).flatMap(([workflow, each]) =>
    Object.entries(each).map(
      ([output, value]) => `  ${workflow}.${output}  ${JSON.stringify(value) ?? 'none'}`,
    ),
  );
  const verdict = succeeded ? `${name}: ${steps.length} steps succeeded` : `${name}: failed`;
  return ['', verdict, ...(values.length === 0 ? [] : ['', 'Outputs:', ...values])].join('\n');
}
