import { Command } from 'commander';
import { asStarted } from '../../config/client.ts';
import type { DescribedField, DescribedOperation } from '../../tools/contract/describe-operation.ts';
import { invalidOption } from '../sandbox-options.ts';
import { wrapped } from '../setting-options.ts';
import { type Column, type Screen, screenOf, table } from '../shell/terminal.ts';

interface DescribeFlags {
  example?: boolean;
  json?: boolean;
}

const examples = `
The same text is the help of an operation: custos call createWallet --help.

Examples:
  $ custos describe createWallet
  $ custos describe walletRpc personal_sign
  $ custos describe createPolicy --example > policy.json
  $ custos describe walletRpc transfer --example`;

/** Returns the command `custos describe`, which explains an operation as the API document describes it. */
export function describeCommand(): Command {
  return new Command('describe')
    .description('show the parameters, the body, the errors and an example of an operation')
    .argument('<operation>', 'an operationId, such as walletRpc')
    .argument('[kind]', 'a kind of body, such as personal_sign')
    .option('--example', 'print only a valid body')
    .option('--json', 'print one JSON object')
    .addHelpText('after', examples)
    .action(async (id: string, kind: string | undefined, { example, json }: DescribeFlags) => {
      const described = await describedAs(id, kind);
      if (json === true) return console.log(JSON.stringify(described));
      if (example !== true) return console.log(operationText(described));
      const [body] = Object.values(described.examples);
      if (body === undefined) throw invalidOption(`--example: \`${id}\` has no body`);
      console.log(JSON.stringify(body));
    });
}

/**
 * Returns the help text of an operation for a call such as `custos call createWallet --help`, or undefined for other
 * arguments.
 */
export async function operationHelp(args: readonly string[]): Promise<string | undefined> {
  const [command, id = ''] = args;
  if (command !== 'call' || id.startsWith('-') || !args.some((arg) => arg === '--help' || arg === '-h'))
    return undefined;
  return operationText(await describedAs(id, undefined));
}

/**
 * Describes an operation.
 *
 * @throws ConfigError for an unknown operation or kind.
 */
async function describedAs(id: string, kind: string | undefined): Promise<DescribedOperation> {
  const [{ findOperation }, { describeOperation }] = await Promise.all([
    import('../../tools/client/call-operation.ts'),
    import('../../tools/contract/describe-operation.ts'),
  ]);
  const described = describeOperation(findOperation(id).id)!;
  if (kind === undefined) return described;
  const { kinds } = described;
  if (kinds?.values.includes(kind) === true) return describeOperation(id, kind)!;
  const known = kinds === null ? 'no kind of body' : `one of ${kinds.values.join(', ')}`;
  throw invalidOption(`\`${id}\`: expected ${known}, got \`${kind}\``);
}

function operationText(described: DescribedOperation, screen: Screen = screenOf()): string {
  const { operation, method, path, summary, description, parameters, body, kinds, errors } = described;
  const [example] = Object.values(described.examples);
  const part = (title: string, text: string): string[] =>
    text === '' ? [] : ['', screen.paint('bold', title), ...text.split('\n').map((line) => `  ${line}`)];
  const names = kinds === null ? '' : `${kinds.field} is one of ${kinds.values.join(', ')}`;
  const more = kinds === null ? '' : asStarted(`\nSee \`custos describe ${operation} ${kinds.values[0]}\`.`);
  return [
    `${screen.paint('bold', operation)}  ${method} ${path}`,
    ...(summary === '' ? [] : [summary]),
    ...(description === '' ? [] : ['', ...wrapped(description, 0)]),
    ...part('Parameters', fieldsText(parameters, screen)),
    ...part('Body', kinds === null ? fieldsText(body, screen) : names + more),
    ...part('Errors', errors.map(({ status, codes }) => `${status}  ${codes.join(', ')}`).join('\n')),
    ...part('Example of a body', example === undefined ? '' : JSON.stringify(example, undefined, 2)),
  ].join('\n');
}

function fieldsText(fields: readonly DescribedField[], screen: Screen): string {
  const columns: readonly Column<DescribedField>[] = [
    { title: 'name', text: ({ name, depth }) => '  '.repeat(depth) + name, color: () => 'cyan' },
    { title: '', text: ({ is_required }) => (is_required ? 'required' : ''), color: () => 'yellow' },
    { title: 'type', text: ({ type }) => type, canBeCut: true },
    { title: 'meaning', text: ({ description }) => description, canBeCut: true },
  ];
  return table(columns, fields, { ...screen, isTerminal: false, width: screen.width - 2 });
}
