import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { asStarted } from '../config/client.ts';
import { ConfigError, readDatabases } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { operatorsCommand } from './operators.ts';
import { cellOption, dataOption } from './setting-options.ts';
import { type Column, type Screen, screenOf, table, timeOn } from './shell/terminal.ts';
import { vaultsCommand } from './vaults.ts';

interface AppsFlags {
  overlap?: string;
  settings?: string;
  data?: string;
  cell?: string;
  name?: string;
  force?: boolean;
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

/** Returns the command `custos apps …`, which manages the apps and their secrets. */
export function appsCommand(): Command {
  const apps = new Command('apps')
    .description('create, list and configure apps, rotate their secrets')
    .addHelpText('after', appExamples);
  apps.addCommand(
    appOptions(
      new Command('create').description('create an app and print its secret, which is shown only once'),
    )
      .requiredOption('--name <text>', 'name of the app')
      .option('--force', 'with --cell: place the app even in a drained cell')
      .action(async (flags: AppsFlags) => {
        const app = await createApp(flags);
        const cell = app.cell === undefined ? '' : `cell        ${app.cell}\n`;
        printApp(
          flags,
          app,
          `app id      ${app.id}\n${cell}app secret  ${app.secret}\n\nThe secret is not stored in plain text and will not be shown again.`,
        );
      }),
  );
  apps.addCommand(
    appOptions(new Command('list').description('list the apps, oldest first')).action(
      async (flags: AppsFlags) => {
        const { list, faults } = await listApps(flags);
        const screen = screenOf();
        const text = table(appColumns(screen, list), list, screen);
        printApp(
          flags,
          list,
          list.length === 0 ? asStarted('no apps; create one with `custos apps create`') : text,
        );
        if (faults.length > 0) throw new StartError(faults.join('\n'));
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
        const app = await (await appAdministration(flags, appId)).rotateSecret(appId, readOverlapMs(flags));
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
        const app = await (await appAdministration(flags, appId)).configure(appId, settings);
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
        const app = await (await appAdministration(flags, appId)).rotateSigningKey(appId);
        printApp(flags, app, `app id  ${app.id}\n\nThe new key is in the app's JWKS.`);
      }),
  );
  apps.addCommand(moveCommand());
  apps.addCommand(vaultsCommand());
  apps.addCommand(operatorsCommand());
  return apps;
}

interface MoveFlags {
  to?: string;
  abort?: boolean;
  json?: boolean;
}

function moveCommand(): Command {
  return new Command('move')
    .description('move an app to another cell; its requests get 503 in the meantime')
    .argument('<app-id>', 'id of the app')
    .option('--to <cell>', 'the new cell; may be omitted with --abort')
    .option('--abort', 'give up a move that was interrupted: the app stays in its cell')
    .option('--json', 'print JSON')
    .addHelpText('after', moveHelp)
    .action(async (appId: string, { to, abort = false, json }: MoveFlags) => {
      const { abortMove, moveApp } = await import('../admin/move-app.ts');
      if (abort) {
        const kept = await abortMove({ appId, to });
        printApp(json === undefined ? {} : { json }, kept, `kept  ${appId}\n      in the cell ${kept.cell}`);
        return;
      }
      if (to === undefined) throw new ConfigError('invalid option:', ['--to is missing: the new cell']);
      const moved = await moveApp({ appId, to });
      const text = `moved  ${appId}\n       ${moved.from} -> ${moved.to}, ${moved.rows} rows, requests refused for ${(moved.refused_ms / 1000).toFixed(1)} s by this run`;
      printApp(json === undefined ? {} : { json }, moved, text);
    });
}

const moveHelp = `
All servers must serve both cells. If the command is interrupted, run it again:
it continues, and prints the time of its own run only. See docs/scale.md.

Example:
  $ custos apps move cm3k8v0q1x5z7b2n4w6y9t0ra --to eu-2

Exit codes: 0 success, 1 failure, 2 invalid usage.`;

type ListedApp = {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  /** Set only in a deployment with several cells. */
  readonly cell?: string;
};

const cellColumn: Column<ListedApp> = { title: 'cell', text: ({ cell }) => cell ?? '' };

const appColumns = (screen: Screen, list: readonly ListedApp[]): readonly Column<ListedApp>[] => [
  ...(list.some(({ cell }) => cell !== undefined) ? [cellColumn] : []),
  { title: 'name', text: ({ name }) => name, color: () => 'bold', canBeCut: true },
  { title: 'id', text: ({ id }) => id },
  {
    title: 'created',
    text: ({ created_at: at }) => (screen.isTerminal ? timeOn(screen, Date.parse(at)) : at),
    color: () => 'dim',
  },
];

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

/**
 * Parses a JSON object that is given as text or, after `@`, as a file.
 *
 * @throws ConfigError
 */
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
    .addOption(dataOption())
    .addOption(cellOption())
    .option('--json', 'print JSON')
    .addHelpText('after', appExamples);
}

/**
 * Reads `--overlap`, a whole number of seconds, and returns milliseconds.
 *
 * @throws ConfigError
 */
function readOverlapMs({ overlap = '0' }: AppsFlags): number {
  if (!/^\d{1,9}$/.test(overlap)) {
    throw new ConfigError('invalid option:', [
      `--overlap: expected a whole number of seconds, got \`${overlap}\``,
    ]);
  }
  return Number(overlap) * 1000;
}

async function appAdministration(flags: AppsFlags, appId: string) {
  const [{ databaseOfApp }, { administerApps }] = await administration();
  return administerApps(await databaseOfApp(flags, appId));
}

async function createApp(flags: AppsFlags) {
  const [{ placeApp }, { administerApps, newAppId }] = await administration();
  const id = newAppId();
  return placeApp(flags, id, (config) => administerApps(config).createApp(flags.name ?? '', id));
}

/** Lists the apps of all cells that can be reached, or of the selected one, and says which cells cannot. */
async function listApps(flags: AppsFlags): Promise<{ list: ListedApp[]; faults: string[] }> {
  const [{ hasCells }, { administerApps }] = await administration();
  const databases = readDatabases(flags);
  const faults: string[] = [];
  const lists = databases.map(async ({ cell, config }): Promise<ListedApp[]> => {
    try {
      const apps = await administerApps(config).listApps();
      return hasCells(databases) ? apps.map((app) => ({ ...app, cell })) : apps;
    } catch (error) {
      if (databases.length === 1) throw error;
      faults.push((error as Error).message);
      return [];
    }
  });
  return { list: (await Promise.all(lists)).flat(), faults };
}

/** Loads the code that the commands need when they run. Help texts do not need it. */
function administration() {
  return Promise.all([import('../admin/cells.ts'), import('../admin/administration.ts')]);
}

function printApp(flags: AppsFlags, value: unknown, text: string): void {
  console.log(flags.json === true ? JSON.stringify(value) : text);
}
