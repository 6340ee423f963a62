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
  $ custos describe createWallet owner
  $ custos describe walletRpc personal_sign
  $ custos describe walletRpc eth_sendTransaction params.transaction
  $ custos describe createPolicy --example > policy.json
  $ custos describe walletRpc transfer --example`;

/** Returns the command `custos describe`, which explains an operation as the API document describes it. */
export function describeCommand(): Command {
  return new Command('describe')
    .description('show the parameters, the body, the errors and an example of an operation')
    .argument('<operation>', 'an operationId, such as walletRpc')
    .argument('[kind]', 'a kind of body, such as personal_sign')
    .argument('[field]', 'only this field of the body, such as owner or params.transaction')
    .option('--example', 'print only a valid body')
    .option('--json', 'print one JSON object')
    .addHelpText('after', examples)
    .action(async (id: string, ...rest: [string | undefined, string | undefined, DescribeFlags]) => {
      const [kind, field, { example, json }] = rest;
      const described = await describedAs(id, kind, field);
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
  return operationText(await describedAs(id));
}

/**
 * Describes an operation.
 *
 * @param kind a kind of body, or the path of a field if the operation has no such kind.
 * @throws ConfigError for an unknown operation, kind or field.
 */
async function describedAs(id: string, kind?: string, field?: string): Promise<DescribedOperation> {
  const [{ findOperation }, { describeOperation, fieldsAt }] = await Promise.all([
    import('../../tools/client/call-operation.ts'),
    import('../../tools/contract/describe-operation.ts'),
  ]);
  const whole = describeOperation(findOperation(id).id)!;
  if (kind === undefined) return whole;
  const { kinds } = whole;
  const isKind = kinds?.values.includes(kind) === true;
  const described = isKind ? describeOperation(id, kind)! : whole;
  const path = isKind ? field : kind;
  if (path === undefined) return described;
  const body = fieldsAt(described.body, path);
  if (body !== undefined && (isKind || field === undefined))
    return { ...described, description: '', parameters: [], errors: [], body };
  const names = described.body.filter(({ depth }) => depth === 0).map(({ name }) => name);
  const known = [
    kinds === null ? 'no kind of body' : `one of ${kinds.values.join(', ')}`,
    ...(names.length === 0 ? [] : [`a field such as ${names.slice(0, MAX_NAMES).join(', ')}`]),
  ];
  throw invalidOption(`\`${id}\`: expected ${isKind ? known.at(-1) : known.join(', or ')}, got \`${path}\``);
}

const MAX_NAMES = 12;

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
