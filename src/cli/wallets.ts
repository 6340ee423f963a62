import { Command } from 'commander';
import { readDatabaseConfig } from '../config/config.ts';
import { cellOption, dataOption } from './setting-options.ts';

interface WalletsFlags {
  data?: string;
  cell?: string;
  json?: boolean;
}

const walletsExamples = `
Uses the database in DATABASE_URL, or a sandbox's data folder with --data, even
while the sandbox is running.

Examples:
  $ custos wallets restore fmfdj6yqly31huorjqzq38zc
  $ custos wallets restore ext_wal_alice --data .custos`;

/** Returns the command `custos wallets …`, which changes wallets in ways that only an operator may. */
export function walletsCommand(): Command {
  const wallets = new Command('wallets')
    .description('restore archived wallets')
    .addHelpText('after', walletsExamples);
  wallets.addCommand(
    new Command('restore')
      .description('restore an archived wallet, with its owner, signers and policies')
      .argument('<wallet-id>', 'id of the wallet, or `ext_wal_` and its external id')
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', walletsExamples)
      .action(async (walletId: string, flags: WalletsFlags) => {
        const config = readDatabaseConfig(flags);
        const { restoreWallet } = await import('../admin/administration.ts');
        const wallet = await restoreWallet(config, walletId);
        console.log(
          flags.json === true
            ? JSON.stringify(wallet)
            : `wallet   ${wallet.id}\napp      ${wallet.app_id}\naddress  ${wallet.address}`,
        );
      }),
  );
  return wallets;
}
