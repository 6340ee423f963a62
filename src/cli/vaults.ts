import { Command } from 'commander';
import { ConfigError, readNodesConfig } from '../config/config.ts';
import { cellOption, dataOption } from './setting-options.ts';

interface VaultFlags {
  chain: string;
  address: string;
  provider: string;
  adminWallet?: string;
  feeBps: string;
  name?: string;
  rpc?: string[];
  data?: string;
  cell?: string;
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

/** Returns the command `custos apps vaults …`, which manages the vaults that an app's wallets can use. */
export function vaultsCommand(): Command {
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
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', vaultExamples)
      .action(add),
  );
  return vaults;
}

async function add(appId: string, flags: VaultFlags): Promise<void> {
  const nodes = readNodesConfig(flags);
  const [{ databaseOfApp }, { addEarnVault }] = await Promise.all([
    import('../admin/cells.ts'),
    import('../admin/earn-vaults.ts'),
  ]);
  const database = await databaseOfApp(flags, appId);
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

function readFeeBps(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 10000) return Number(text);
  throw new ConfigError('invalid option:', [`--fee-bps: expected 0 to 10000, got \`${text}\``]);
}
