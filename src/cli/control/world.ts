import { Command } from 'commander';
import type { SandboxPool } from '../../tools/client/world.ts';
import {
  addSandboxClientOptions,
  addSandboxListOptions,
  invalidOption,
  printSandboxList,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import type { Column } from '../shell/terminal.ts';

/** Returns the command `custos reset`, which returns a sandbox to the state after its start. */
export function resetCommand(): Command {
  return addSandboxClientOptions(
    new Command('reset').description('return a running sandbox to the state after its start'),
  ).action((flags: SandboxClientFlags) =>
    withSandbox(
      flags,
      async (client) => {
        const { resetSandbox } = await import('../../tools/client/world.ts');
        const reset = await resetSandbox(client);
        const now = new Date(reset.now_ms).toISOString();
        console.log(flags.json === true ? JSON.stringify(reset) : `reset; the clock shows ${now}`);
      },
      { mustBeCertain: true },
    ),
  );
}

interface FaucetFlags extends SandboxClientFlags {
  chain: string;
  asset?: string;
  token?: string;
  gas?: boolean;
}

const faucetExamples = `
Examples:
  $ custos faucet ext_wal_acme-ethereum 2
  $ custos faucet ext_wal_alice 250 --asset usdc
  $ custos faucet 0x742D35CC6634c0532925A3b844BC9E7595F0BEb0 0.5 \\
      --chain ethereum`;

/** Returns the command `custos faucet`, which funds an address on a simulated chain. */
export function faucetCommand(): Command {
  return addSandboxClientOptions(
    new Command('faucet')
      .description('add funds to a wallet or an address on a simulated chain')
      .argument('<recipient>', 'the id of a wallet, or an address')
      .argument('<amount>', 'in units: 0.5')
      .option('--chain <chain>', 'name or CAIP-2 id of the chain', 'base')
      .option('--asset <name>', 'an asset of the chain, such as usdc (default: the native one)')
      .option('--token <address>', 'the contract or mint of any token, instead of --asset')
      .option('--gas', 'also add the native asset for fees'),
  )
    .addHelpText('after', faucetExamples)
    .action((recipient: string, amount: string, flags: FaucetFlags) =>
      withSandbox(flags, async (client) => {
        const { fund } = await import('../../tools/client/world.ts');
        const { chain, asset, token } = flags;
        const deposit = await fund(client, recipient, {
          ...{ chain, amount },
          ...(asset === undefined ? {} : { asset }),
          ...(token === undefined ? {} : { token_address: token }),
          ...(flags.gas === true ? { with_gas: true } : {}),
        });
        const { address, caip2, transaction_hash: hash } = deposit;
        const balance = unitsText(BigInt(deposit.raw_balance), deposit.decimals);
        const of = token === undefined ? (asset ?? 'of the native asset') : `of ${token}`;
        const line = `${address} on ${caip2} has ${balance} ${of}  ${hash}`;
        console.log(flags.json === true ? JSON.stringify(deposit) : line);
      }),
    );
}

/** Converts base units to whole units, without trailing zeros. */
function unitsText(raw: bigint, decimals: number): string {
  const digits = String(raw).padStart(decimals + 1, '0');
  const [whole, part] = [digits.slice(0, digits.length - decimals), digits.slice(digits.length - decimals)];
  return `${whole}.${part}`.replace(/(?:\.|(?<![.0]))0+$|\.$/, '');
}

interface MineFlags extends SandboxClientFlags {
  chain?: string;
}

/** Returns the command `custos mine`, which mines blocks on simulated chains. */
export function mineCommand(): Command {
  return addSandboxClientOptions(
    new Command('mine')
      .description('mine blocks on simulated chains, which confirms transactions')
      .argument('[count]', 'number of blocks', '1')
      .option('--chain <chain>', 'name or CAIP-2 id of a chain (default: all in use)'),
  ).action((count: string, flags: MineFlags) => {
    if (!/^[1-9]\d{0,4}$/.test(count)) {
      throw invalidOption(`expected a number of blocks, got \`${count}\``);
    }
    const body = { count: Number(count), ...(flags.chain === undefined ? {} : { chain: flags.chain }) };
    return withSandbox(flags, async (client) => {
      const { mineBlocks } = await import('../../tools/client/world.ts');
      const mined = await mineBlocks(client, body);
      if (flags.json === true) console.log(JSON.stringify(mined));
      else for (const { caip2, block_number: block } of mined.data) console.log(`${caip2}  block ${block}`);
    });
  });
}

interface PoolsFlags extends SandboxClientFlags {
  chain?: string;
  transaction?: string;
}

const poolsExamples = `
Examples:
  $ custos pools --chain base
  $ custos pools --transaction 0x5c50… --json`;

/** Returns the command `custos pools`, which prints the liquidity pools of simulated chains. */
export function poolsCommand(): Command {
  return addSandboxListOptions(
    new Command('pools')
      .description('print the liquidity pools that swaps trade with, and their prices')
      .option('--chain <chain>', 'name or CAIP-2 id of an EVM chain (default: all in use)')
      .option(
        '--transaction <hash>',
        'only the pools in which this transaction traded, and how it moved them',
      ),
  )
    .addHelpText('after', poolsExamples)
    .action(async ({ chain, transaction, ...flags }: PoolsFlags) => {
      const { listPools } = await import('../../tools/client/world.ts');
      await printSandboxList(flags, (client) => listPools(client, { chain, transaction_hash: transaction }), {
        columns: poolColumns,
        empty: transaction === undefined ? 'no chain in use has a pool' : 'the transaction traded in no pool',
      });
    });
}

const nameOf = ({ symbol, token_address: address }: SandboxPool['assets'][number]): string =>
  symbol ?? address;

const rounded = (amount: string): string =>
  Number(amount).toLocaleString('en-US', { maximumFractionDigits: 4 });

const poolColumns: readonly Column<SandboxPool>[] = [
  { title: 'chain', text: ({ chain, caip2 }) => chain ?? caip2 },
  { title: 'pool', text: ({ address }) => address, color: () => 'dim' },
  {
    title: 'reserves',
    text: ({ assets }) => assets.map((asset) => `${rounded(asset.reserve)} ${nameOf(asset)}`).join(' + '),
  },
  {
    title: 'price',
    text({ assets: [one, other], price, trades }) {
      const [before, after] = [trades[0]?.price_before, trades.at(-1)?.price_after];
      const prices = before == null ? (price ?? '') : `${before} -> ${after}`;
      return prices === '' ? 'empty' : `1 ${nameOf(one!)} = ${prices} ${nameOf(other!)}`;
    },
    color: () => 'bold',
  },
];
