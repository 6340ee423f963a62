import { Command, Option } from 'commander';
import type { RestoreReport } from '../../admin/restored.ts';
import { readDatabaseConfig, readNodesConfig } from '../../config/config.ts';
import { addSettingOptions, cellOption, dataOption } from '../setting-options.ts';

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
 * Returns the command `custos restored …`, which reports the changes that a restored database may lack, and releases
 * its servers.
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
      console.log(flags.json === true ? JSON.stringify(report) : textOf(report).join('\n'));
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
        const { releaseChanges } = await import('../../admin/restored.ts');
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

function textOf({ restore, in_doubt: doubt, on_chain: onChain, accounts }: RestoreReport): string[] {
  const state =
    restore === null
      ? ['the database does not count as restored']
      : [
          `restored     ${restore.cause}, noticed ${restore.noticed_at}`,
          `newest       ${restore.newest_record_at ?? 'no record'}`,
          `changes      ${restore.released_at === null ? 'held' : `released ${restore.released_at}`}`,
        ];
  const listed = (name: string, { count }: { count: number }): string => `${name.padEnd(12)} ${count}`;
  return [
    ...state,
    '',
    listed('transactions', doubt.transactions),
    ...doubt.transactions.rows.map(
      ({ id, caip2, status, hash }) => `  ${id}  ${caip2}  ${status}, chain: ${onChain[id]}  ${hash ?? ''}`,
    ),
    listed('actions', doubt.actions),
    ...doubt.actions.rows.map(({ id, type, wallet_id }) => `  ${id}  ${type}  wallet ${wallet_id}`),
    listed('intents', doubt.intents),
    ...doubt.intents.rows.map(({ id, status, operation }) => `  ${id}  ${status}  ${operation}`),
    listed('automations', doubt.executions),
    ...doubt.executions.rows.map(({ id, wallet_id, caip2 }) => `  ${id}  ${caip2}  wallet ${wallet_id}`),
    `deliveries   ${doubt.deliveries.deliveries}, and ${doubt.deliveries.events} events without any`,
    `accounts     ${accounts.ahead.length} of ${accounts.compared} have sent more than the database knows`,
    ...accounts.ahead.map(
      (each) =>
        `  ${each.account}  wallet ${each.wallet_id}  nonce ${each.known_nonce}, chain ${each.chain_nonce}`,
    ),
    ...accounts.unanswered.map((account) => `  ${account}  no node answered`),
    ...Object.entries(accounts.uncomparable).map(
      ([type, count]) => `  ${count} ${type} wallets  cannot be compared; accept them after checking`,
    ),
  ];
}
