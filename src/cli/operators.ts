import { Command, Option } from 'commander';
import type { OperatorAdministration } from '../admin/operators.ts';
import { ConfigError } from '../config/config.ts';
import { cellOption, dataOption } from './setting-options.ts';
import { type Column, type Screen, screenOf, table, timeOn } from './shell/terminal.ts';

type OperatorRole = 'viewer' | 'developer' | 'admin';
interface OperatorsFlags {
  name?: string;
  role?: OperatorRole;
  limit?: string;
  data?: string;
  cell?: string;
  json?: boolean;
}

const roles: readonly OperatorRole[] = ['viewer', 'developer', 'admin'];
const helpText = `
Uses the database in DATABASE_URL, or a sandbox's data folder with --data, even
while the sandbox is running.

Roles: a viewer reads traces, reports on policies, the operators and what they
did; a developer also evaluates requests and drafts of policies; an admin also
restores wallets, transfers accounts and manages the operators. From the first
operator on, the admin port requires the secret of an operator: Authorization:
Bearer <secret>.

Examples:
  $ custos apps operators add cm3k8v0q1x5z7b2n4w6y9t0ra --name Alice \\
      --role admin
  $ custos apps operators role cm3k8v0q1x5z7b2n4w6y9t0ra \\
      u3k8v0q1x5z7b2n4w6y9t0ra viewer
  $ custos apps operators records cm3k8v0q1x5z7b2n4w6y9t0ra`;

/**
 * Returns the command `custos apps operators …`, which manages the operators of an app on the admin port, and shows
 * their actions.
 */
export function operatorsCommand(): Command {
  const operators = new Command('operators')
    .description('add, list and remove operators of an app, show what they did')
    .addHelpText('after', helpText);
  operators.addCommand(
    withCommonOptions(
      new Command('add').description('add an operator and print the secret, which is shown only once'),
    )
      .requiredOption('--name <text>', 'name of the person or program')
      .addOption(new Option('--role <role>', 'role').choices([...roles]).makeOptionMandatory())
      .action(async (appId: string, flags: OperatorsFlags) => {
        const wanted = { name: readName(flags.name), role: flags.role! };
        const operator = await (await administration(flags, appId)).add(appId, wanted);
        const text = `operator id      ${operator.id}\noperator secret  ${operator.secret}\n\nThe secret is not stored in plain text and will not be shown again.`;
        printResult(flags, operator, text);
      }),
  );
  operators.addCommand(
    withCommonOptions(new Command('list').description('list the operators, oldest first')).action(
      async (appId: string, flags: OperatorsFlags) => {
        const list = await (await administration(flags, appId)).list(appId);
        printResult(
          flags,
          list,
          list.length === 0 ? 'no operators' : table(operatorColumns, list, screenOf()),
        );
      },
    ),
  );
  operators.addCommand(
    withCommonOptions(new Command('role').description('give an operator another role'))
      .argument('<operator-id>', 'id of the operator')
      .argument('<role>', roles.join(', '), readRole)
      .action(async (appId: string, operatorId: string, role: OperatorRole, flags: OperatorsFlags) => {
        const operator = await (await administration(flags, appId)).changeRole(appId, operatorId, role);
        printResult(flags, operator, lineOf(operator));
      }),
  );
  operators.addCommand(
    withCommonOptions(new Command('remove').description('remove an operator and revoke their secret'))
      .argument('<operator-id>', 'id of the operator')
      .action(async (appId: string, operatorId: string, flags: OperatorsFlags) => {
        const operator = await (await administration(flags, appId)).remove(appId, operatorId);
        printResult(flags, operator, `removed ${operator.id}`);
      }),
  );
  operators.addCommand(
    withCommonOptions(new Command('records').description('list what was done to the app, newest first'))
      .option('--limit <number>', 'maximum number of records', '50')
      .action(async (appId: string, flags: OperatorsFlags) => {
        const records = await (await administration(flags, appId)).records(appId, readLimit(flags.limit));
        const screen = screenOf();
        const text = table(recordColumns(screen), records, screen);
        printResult(flags, records, records.length === 0 ? 'no records' : text);
      }),
  );
  return operators;
}

function withCommonOptions(command: Command): Command {
  return command
    .argument('<app-id>', 'id of the app')
    .addOption(dataOption())
    .addOption(cellOption())
    .option('--json', 'print JSON')
    .addHelpText('after', helpText);
}

type Listed = Awaited<ReturnType<OperatorAdministration['list']>>[number];
type Recorded = Awaited<ReturnType<OperatorAdministration['records']>>[number];

const operatorColumns: readonly Column<Listed>[] = [
  { title: 'name', text: ({ name }) => name, color: () => 'bold', canBeCut: true },
  { title: 'role', text: ({ role }) => role },
  { title: 'id', text: ({ id }) => id },
];

const recordColumns = (screen: Screen): readonly Column<Recorded>[] => [
  { title: 'when', text: ({ at_ms: atMs }) => timeOn(screen, atMs), color: () => 'dim' },
  {
    title: 'who',
    text: (record) =>
      record.operator_id === null ? record.origin : `${record.operator_name} (${record.operator_id})`,
  },
  { title: 'action', text: ({ action }) => action },
  {
    title: 'result',
    text: ({ result }) => result,
    color: ({ result }) => (result === 'done' ? 'green' : 'yellow'),
  },
  {
    title: 'on',
    text: ({ targets }) =>
      Object.entries(targets)
        .map(([name, value]) => `${name}=${value}`)
        .join('  '),
  },
];

function lineOf(operator: Listed): string {
  return operatorColumns.map(({ text }) => text(operator)).join('  ');
}

function readRole(text: string): OperatorRole {
  const role = roles.find((known) => known === text);
  if (role === undefined) throw invalid(`role: expected ${roles.join(', ')}, got \`${text}\``);
  return role;
}

function readName(text = ''): string {
  if (/^\P{Cc}{1,100}$/u.test(text)) return text;
  throw invalid(`--name: expected 1 to 100 characters without control characters, got ${text.length}`);
}

function readLimit(text = ''): number {
  if (/^[0-9]{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= 1000) return Number(text);
  throw invalid(`--limit: expected 1 to 1000, got \`${text}\``);
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid option:', [fault]);
}

async function administration(flags: OperatorsFlags, appId: string): Promise<OperatorAdministration> {
  const [{ databaseOfApp }, { administerOperators }] = await Promise.all([
    import('../admin/cells.ts'),
    import('../admin/operators.ts'),
  ]);
  return administerOperators(await databaseOfApp(flags, appId));
}

function printResult(flags: OperatorsFlags, value: unknown, text: string): void {
  console.log(flags.json === true ? JSON.stringify(value) : text);
}
