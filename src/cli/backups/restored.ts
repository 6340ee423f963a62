import { Command, Option } from 'commander';
import type { RestoreReport } from '../../admin/restored.ts';
import { readDatabaseConfig, readNodesConfig } from '../../config/config.ts';
import { addSettingOptions, cellOption, dataOption } from '../setting-options.ts';
import { type Column, type Screen, screenOf, table, timeOn } from '../shell/terminal.ts';

interface RestoredFlags {
  data?: string;
  cell?: string;
  rpc?: string[];
  json?: boolean;
  all?: boolean;
  deliveries?: string;
}

const examples = `
A server that finds its database restored answers reads and holds everything
else, so that nothing is paid or delivered twice. Compare the report with what
happened since the backup, then release the changes. Accounts that a chain knows
more of than the database stay refused until they are accepted. See
docs/backups.md.

Examples:
  $ custos restored report --rpc eip155:1=https://node.example
  $ custos restored release
  $ custos restored accept eip155:1:0x52908400098527886E0F7030069857D2E4169EE7

Exit codes: 0 success, 1 failure, 2 invalid usage.`;

/**
 * Returns the command `custos restored …`, which reports what a restored database may lack, and allows changes and
 * transactions again.
 */
export function restoredCommand(): Command {
  const restored = new Command('restored')
    .description('report what is in doubt after a restore, and let the servers go on')
    .addHelpText('after', examples);
  restored.addCommand(
    addSettingOptions(
      onDatabase('report', 'list what the database was doing, and compare its accounts with the chains'),
      'restored',
    ).action(async (flags: RestoredFlags) => {
      const [config, nodes] = [readDatabaseConfig(flags), readNodesConfig(flags)];
      const { reportRestore } = await import('../../admin/restored.ts');
      const report = await reportRestore(config, nodes, (count) =>
        console.error(`${count} accounts compared`),
      );
      console.log(flags.json === true ? JSON.stringify(report) : textOf(report, screenOf()).join('\n'));
    }),
  );
  restored.addCommand(
    onDatabase('release', 'allow changes again')
      .addOption(
        new Option('--deliveries <what>', 'what becomes of webhooks that waited when the backup was made')
          .choices(['send', 'skip'])
          .default('send'),
      )
      .action(async (flags: RestoredFlags) => {
        const config = readDatabaseConfig(flags);
        const [{ releaseChanges }, { requireOwnApps }] = await Promise.all([
          import('../../admin/restored.ts'),
          import('../../admin/cells.ts'),
        ]);
        await requireOwnApps(flags);
        const restore = await releaseChanges(config, flags.deliveries === 'skip');
        console.log(flags.json === true ? JSON.stringify(restore) : 'changes are released');
      }),
  );
  restored.addCommand(
    onDatabase('accept', 'let accounts send again that a chain knows more of than the database')
      .argument('[accounts...]', 'CAIP-10 ids, such as those of the report')
      .option('--all', 'accept every account, of every chain')
      .action(async (accounts: string[], flags: RestoredFlags) => {
        const config = readDatabaseConfig(flags);
        if ((flags.all === true) === accounts.length > 0) {
          const { ConfigError } = await import('../../config/config.ts');
          throw new ConfigError('invalid arguments:', ['expected accounts, or --all']);
        }
        const { acceptRestored } = await import('../../admin/restored.ts');
        await acceptRestored(config, flags.all === true ? 'all' : accounts);
        const count = flags.all === true ? 'all' : accounts.length;
        console.log(flags.json === true ? JSON.stringify({ accepted: count }) : `accepted  ${count}`);
      }),
  );
  restored.addCommand(
    onDatabase(
      'mark',
      'say that the database was restored, where servers cannot notice it (a copy of a disk)',
    ).action(async (flags: RestoredFlags) => {
      const config = readDatabaseConfig(flags);
      const { markRestored } = await import('../../admin/restored.ts');
      await markRestored(config);
      console.log(flags.json === true ? JSON.stringify({ held: true }) : 'changes are held');
    }),
  );
  return restored;
}

function onDatabase(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .addOption(dataOption())
    .addOption(cellOption())
    .option('--json', 'print JSON')
    .addHelpText('after', examples);
}

function textOf(
  { restore, in_doubt: doubt, on_chain: onChain, accounts }: RestoreReport,
  screen: Screen,
): string[] {
  const { paint } = screen;
  const fact = (name: string, text: string | number): string => `${name.padEnd(12)} ${text}`;
  const state =
    restore === null
      ? [paint('green', 'the database does not count as restored')]
      : [
          fact('restored', `${restore.cause}, noticed ${timeOf(restore.noticed_at, screen)}`),
          fact('newest', restore.newest_record_at ?? 'no record'),
          fact(
            'changes',
            restore.released_at === null
              ? paint('yellow', 'held')
              : paint('green', `released ${timeOf(restore.released_at, screen)}`),
          ),
        ];
  const section = <Row>(name: string, count: number, rows: readonly Row[], columns: Column<Row>[]) => [
    fact(name, count === 0 ? '0' : paint('yellow', String(count))),
    ...(rows.length === 0 ? [] : indented(table(columns, rows, { ...screen, width: screen.width - 2 }))),
  ];
  const id = <Row extends { id: string }>(): Column<Row> => ({ title: 'id', text: (row) => row.id });
  return [
    ...state,
    '',
    ...section('transactions', doubt.transactions.count, doubt.transactions.rows, [
      id(),
      { title: 'chain', text: ({ caip2 }) => caip2 },
      { title: 'status', text: ({ status }) => status },
      { title: 'on the chain', text: (row) => `chain: ${onChain[row.id]}` },
      { title: 'hash', text: ({ hash }) => hash ?? '', color: () => 'dim' },
    ]),
    ...section('actions', doubt.actions.count, doubt.actions.rows, [
      id(),
      { title: 'type', text: ({ type }) => type },
      { title: 'wallet', text: ({ wallet_id: wallet }) => `wallet ${wallet}` },
    ]),
    ...section('intents', doubt.intents.count, doubt.intents.rows, [
      id(),
      { title: 'status', text: ({ status }) => status },
      { title: 'operation', text: ({ operation }) => operation },
    ]),
    ...section('automations', doubt.executions.count, doubt.executions.rows, [
      id(),
      { title: 'chain', text: ({ caip2 }) => caip2 },
      { title: 'wallet', text: ({ wallet_id: wallet }) => `wallet ${wallet}` },
    ]),
    fact('deliveries', `${doubt.deliveries.deliveries}, and ${doubt.deliveries.events} events without any`),
    fact(
      'accounts',
      `${accounts.ahead.length} of ${accounts.compared} have sent more than the database knows`,
    ),
    ...(accounts.ahead.length === 0
      ? []
      : indented(
          table(
            [
              { title: 'account', text: ({ account }) => account, color: () => 'red' },
              { title: 'wallet', text: ({ wallet_id: wallet }) => `wallet ${wallet}` },
              {
                title: 'nonces',
                text: ({ known_nonce: known, chain_nonce: chain }) => `nonce ${known}, chain ${chain}`,
              },
            ],
            accounts.ahead,
            { ...screen, width: screen.width - 2 },
          ),
        )),
    ...accounts.unanswered.map((account) => `  ${account}  no node answered`),
    ...Object.entries(accounts.uncomparable).map(
      ([type, count]) => `  ${count} ${type} wallets  cannot be compared; accept them after checking`,
    ),
  ];
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`);
}

function timeOf(at: string, screen: Screen): string {
  return timeOn(screen, Date.parse(at));
}
