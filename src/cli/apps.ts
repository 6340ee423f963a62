import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import type { OperatorAdministration } from '../admin/operators.ts';
import { ConfigError, readDatabaseConfig, readNodesConfig } from '../config/config.ts';

type OperatorRole = 'viewer' | 'developer' | 'admin';

interface OperatorsFlags {
  name?: string;
  role?: OperatorRole;
  limit?: string;
  data?: string;
  json?: boolean;
}

const roles: readonly OperatorRole[] = ['viewer', 'developer', 'admin'];

const examples = `
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

/** `custos apps operators …`: who may work on an app through the admin port, and what they did. */
function operatorsCommand(): Command {
  const operators = new Command('operators')
    .description('add, list and remove operators of an app, show what they did')
    .addHelpText('after', examples);
  operators.addCommand(
    common(new Command('add').description('add an operator and print the secret, which is shown only once'))
      .requiredOption('--name <text>', 'name of the person or program')
      .addOption(new Option('--role <role>', 'role').choices([...roles]).makeOptionMandatory())
      .action(async (appId: string, flags: OperatorsFlags) => {
        const wanted = { name: readName(flags.name), role: flags.role! };
        const operator = await (await administration(flags)).add(appId, wanted);
        const text = `operator id      ${operator.id}\noperator secret  ${operator.secret}\n\nThe secret is not stored in plain text and will not be shown again.`;
        print(flags, operator, text);
      }),
  );
  operators.addCommand(
    common(new Command('list').description('list the operators, oldest first')).action(
      async (appId: string, flags: OperatorsFlags) => {
        const list = await (await administration(flags)).list(appId);
        print(flags, list, list.length === 0 ? 'no operators' : list.map(lineOf).join('\n'));
      },
    ),
  );
  operators.addCommand(
    common(new Command('role').description('give an operator another role'))
      .argument('<operator-id>', 'id of the operator')
      .argument('<role>', roles.join(', '), readRole)
      .action(async (appId: string, operatorId: string, role: OperatorRole, flags: OperatorsFlags) => {
        const operator = await (await administration(flags)).changeRole(appId, operatorId, role);
        print(flags, operator, lineOf(operator));
      }),
  );
  operators.addCommand(
    common(new Command('remove').description('remove an operator, whose secret is refused from then on'))
      .argument('<operator-id>', 'id of the operator')
      .action(async (appId: string, operatorId: string, flags: OperatorsFlags) => {
        const operator = await (await administration(flags)).remove(appId, operatorId);
        print(flags, operator, `removed ${operator.id}`);
      }),
  );
  operators.addCommand(
    common(new Command('records').description('list what was done to the app, newest first'))
      .option('--limit <number>', 'maximum number of records', '50')
      .action(async (appId: string, flags: OperatorsFlags) => {
        const records = await (await administration(flags)).records(appId, readLimit(flags.limit));
        print(flags, records, records.length === 0 ? 'no records' : records.map(recordLineOf).join('\n'));
      }),
  );
  return operators;
}

function common(command: Command): Command {
  return command
    .argument('<app-id>', 'id of the app')
    .option('--data <folder>', "use a sandbox's data folder instead of DATABASE_URL")
    .option('--json', 'print JSON')
    .addHelpText('after', examples);
}

type Listed = Awaited<ReturnType<OperatorAdministration['list']>>[number];
type Recorded = Awaited<ReturnType<OperatorAdministration['records']>>[number];

function lineOf({ id, role, name }: Listed): string {
  return `${id}  ${role.padEnd('developer'.length)}  ${name}`;
}

function recordLineOf(record: Recorded): string {
  const who = record.operator_id === null ? record.origin : `${record.operator_name} (${record.operator_id})`;
  const targets = Object.entries(record.targets).map(([name, value]) => `${name}=${value}`);
  return [new Date(record.at_ms).toISOString(), who, record.action, record.result, ...targets].join('  ');
}

/** Throws ConfigError. */
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

async function administration(flags: OperatorsFlags): Promise<OperatorAdministration> {
  const config = readDatabaseConfig(flags);
  const { administerOperators } = await import('../admin/operators.ts');
  return administerOperators(config);
}

function print(flags: OperatorsFlags, value: unknown, text: string): void {
  console.log(flags.json === true ? JSON.stringify(value) : text);
}

interface VaultFlags {
  chain: string;
  address: string;
  provider: string;
  adminWallet?: string;
  feeBps: string;
  name?: string;
  rpc?: string[];
  data?: string;
  json?: boolean;
}

const vaultExamples = `
Uses the database in DATABASE_URL, or a sandbox's data folder with --data, and
the nodes in CUSTOS_RPC or --rpc.

Example:
  $ custos apps vaults add cm3k8v0q1x5z7b2n4w6y9t0ra --chain base \\
      --provider morpho \\
      --address 0x81bA25F06d0c7242D513A7472219a65c4646631D \\
      --admin-wallet fmfdj6yqly31huorjqzq38zc`;

/** `custos apps vaults …`: the vaults that an app's wallets can use. */
function vaultsCommand(): Command {
  const vaults = new Command('vaults')
    .description('set up vaults for an app')
    .addHelpText('after', vaultExamples);
  vaults.addCommand(
    new Command('add')
      .description('set up an ERC-4626 vault; its asset is read from the chain')
      .argument('<app-id>', 'id of the app')
      .requiredOption('--chain <name>', 'name of the EVM chain')
      .requiredOption('--address <address>', 'address of the vault')
      .requiredOption('--provider <name>', 'aave, morpho, tempo or veda')
      .option(
        '--admin-wallet <id>',
        'wallet of the app that gets its fees; required unless the provider is tempo',
      )
      .option('--fee-bps <number>', "the app's part of the yield, in basis points", '0')
      .option('--name <text>', 'name of the vault; default: its asset and chain')
      .option('--rpc <caip2=url...>', 'node of the chain')
      .option('--data <folder>', "use a sandbox's data folder instead of DATABASE_URL")
      .option('--json', 'print JSON')
      .addHelpText('after', vaultExamples)
      .action(add),
  );
  return vaults;
}

async function add(appId: string, flags: VaultFlags): Promise<void> {
  const [database, nodes] = [readDatabaseConfig(flags), readNodesConfig(flags)];
  const { addEarnVault } = await import('../admin/earn-vaults.ts');
  const vault = await addEarnVault(database, nodes, {
    ...{ appId, chain: flags.chain, address: flags.address, provider: flags.provider, name: flags.name },
    ...{ adminWalletId: flags.adminWallet, feeBps: readFeeBps(flags.feeBps) },
  });
  console.log(
    flags.json === true
      ? JSON.stringify(vault)
      : `vault id  ${vault.id}\nname      ${vault.name}\nasset     ${vault.asset_symbol} at ${vault.asset_address}`,
  );
}

/** Throws ConfigError. */
function readFeeBps(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 10_000) return Number(text);
  throw new ConfigError('invalid option:', [`--fee-bps: expected 0 to 10000, got \`${text}\``]);
}

interface AppsFlags {
  overlap?: string;
  settings?: string;
  data?: string;
  name?: string;
  json?: boolean;
}

const appExamples = `
Uses the database in DATABASE_URL, or a sandbox's data folder with --data, even
while the sandbox is running.

Examples:
  $ custos apps create --name 'Acme'
  $ custos apps list --data ./custos
  $ custos apps rotate-secret cm3k8v0q1x5z7b2n4w6y9t0ra
  $ custos apps configure cm3k8v0q1x5z7b2n4w6y9t0ra --settings @settings.json`;

/** `custos apps …`: the apps and their secrets. */
export function appsCommand(): Command {
  const apps = new Command('apps')
    .description('create, list and configure apps, rotate their secrets')
    .addHelpText('after', appExamples);
  apps.addCommand(
    appOptions(
      new Command('create').description('create an app and print its secret, which is shown only once'),
    )
      .requiredOption('--name <text>', 'name of the app')
      .action(async (flags: AppsFlags) => {
        const app = await (await appAdministration(flags)).createApp(flags.name ?? '');
        printApp(
          flags,
          app,
          `app id      ${app.id}\napp secret  ${app.secret}\n\nThe secret is not stored in plain text and will not be shown again.`,
        );
      }),
  );
  apps.addCommand(
    appOptions(new Command('list').description('list the apps, oldest first')).action(
      async (flags: AppsFlags) => {
        const list = await (await appAdministration(flags)).listApps();
        const lines = list.map(({ id, name, created_at }) => `${id}  ${created_at}  ${name}`);
        printApp(
          flags,
          list,
          lines.length === 0 ? 'no apps; create one with `custos apps create`' : lines.join('\n'),
        );
      },
    ),
  );
  apps.addCommand(
    appOptions(
      new Command('rotate-secret').description(
        'replace the secret of an app; the new one is shown only once',
      ),
    )
      .argument('<app-id>', 'id of the app')
      .option('--overlap <seconds>', 'how long the old secret remains valid', '0')
      .action(async (appId: string, flags: AppsFlags) => {
        const app = await (await appAdministration(flags)).rotateSecret(appId, readOverlapMs(flags));
        printApp(
          flags,
          app,
          `app id      ${app.id}\napp secret  ${app.secret}\n\nThe secret is not stored in plain text and will not be shown again.`,
        );
      }),
  );
  apps.addCommand(
    appOptions(new Command('configure').description('change the settings of an app'))
      .argument('<app-id>', 'id of the app')
      .requiredOption('--settings <json>', 'settings to replace, as JSON or @file; null removes a setting')
      .addHelpText('after', settingsHelp)
      .action(async (appId: string, flags: AppsFlags) => {
        const settings = readSettings(flags.settings ?? '');
        const app = await (await appAdministration(flags)).configure(appId, settings);
        printApp(flags, app, `app id    ${app.id}\nsettings  ${JSON.stringify(app.settings)}`);
      }),
  );
  apps.addCommand(
    appOptions(
      new Command('rotate-signing-key').description('create a new signing key for the tokens of an app'),
    )
      .argument('<app-id>', 'id of the app')
      .addHelpText('after', "\nExisting tokens remain valid: the old key stays in the app's JWKS.")
      .action(async (appId: string, flags: AppsFlags) => {
        const app = await (await appAdministration(flags)).rotateSigningKey(appId);
        printApp(flags, app, `app id  ${app.id}\n\nThe new key is in the app's JWKS.`);
      }),
  );
  apps.addCommand(vaultsCommand());
  apps.addCommand(operatorsCommand());
  return apps;
}

const settingsHelp = `
Settings: jwt_auth {jwks_url or verification_key, user_id_claim, audiences},
allowed_origins [url], test_accounts [{email, phone_number, otp_code}],
identity_tokens true|false; safeguards: archive_requires_owner,
policy_parts_require_owner, single_use_signatures, strict_methods,
block_test_logins, block_linking_test_accounts true|false, identity_changes
"app_secret", "user_key" or {"wait_hours": n}, require_request_expiry false or
seconds.

Example:
  $ custos apps configure cm3k8v0q1x5z7b2n4w6y9t0ra \\
      --settings '{"jwt_auth":{"jwks_url":"https://login.example.com/jwks.json"}}'`;

/** Parses a JSON object given as text or as `@file`. Throws ConfigError. */
function readSettings(text: string): Record<string, unknown> {
  const refuse = (fault: string) => new ConfigError('invalid option:', [`--settings: ${fault}`]);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text.startsWith('@') ? readFileSync(text.slice(1), 'utf8') : text);
  } catch (error) {
    throw refuse(`expected JSON: ${(error as Error).message}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw refuse('expected a JSON object');
  return parsed as Record<string, unknown>;
}

function appOptions(command: Command): Command {
  return command
    .option('--data <folder>', "use a sandbox's data folder instead of DATABASE_URL")
    .option('--json', 'print JSON')
    .addHelpText('after', appExamples);
}

/** Throws ConfigError. */
function readOverlapMs({ overlap = '0' }: AppsFlags): number {
  if (!/^\d{1,9}$/.test(overlap)) {
    throw new ConfigError('invalid option:', [
      `--overlap: expected a whole number of seconds, got \`${overlap}\``,
    ]);
  }
  return Number(overlap) * 1000;
}

async function appAdministration(flags: AppsFlags) {
  const config = readDatabaseConfig(flags);
  const { administerApps } = await import('../admin/administration.ts');
  return administerApps(config);
}

function printApp(flags: AppsFlags, value: unknown, text: string): void {
  console.log(flags.json === true ? JSON.stringify(value) : text);
}
