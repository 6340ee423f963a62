import { findApp } from '../../domain/access/apps/find-app.ts';
import { addVault, adminAddressOf, type EarnVault, getVault } from '../../domain/money/earn/earn-vault.ts';
import { readChainAddress } from '../../engine/assets/addresses.ts';
import { assetNamed } from '../../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import { invalidField, notFound } from '../../errors.ts';
import type { ControlContext, Handler } from '../control-plane.ts';
import { requireSimulatedEvm } from '../controllable-chains.ts';
import type { SandboxEarnVault } from '../generated/schemas.ts';

/** The number of decimals that the shares of `morpho` vaults have. */
const MORPHO_DECIMALS = 18;

export const createEarnVault: Handler<'createEarnVault'> = async ({ path, body }, context) => {
  const { chains, clock } = context;
  const { provider, admin_wallet_id: adminWalletId = null } = body;
  const { apy_bps: apyBps = 410, fee_bps: feeBps = 1000 } = body;
  const caip2 = requireSimulatedEvm(chains, body.chain);
  const chain = chainOfCaip2(caip2);
  const asset = chain && assetNamed(chain, body.asset);
  if (chain === undefined || asset == null || asset.tokenAddress === null) {
    throw invalidField('/asset', `expected the name of a token on \`${body.chain}\`, got \`${body.asset}\``);
  }
  const { tokenAddress: assetAddress, decimals } = asset;
  const symbol = asset.asset.toUpperCase();
  const admin = await context.read(async (em) => {
    const { id } = await findApp(em, path.app_id);
    if (adminWalletId === null && provider !== 'tempo') {
      throw invalidField('/admin_wallet_id', `expected a wallet: a vault of \`${provider}\` has an admin`);
    }
    return adminAddressOf(em, id, adminWalletId);
  });
  const address = await chains.earn.addVault(caip2, {
    ...{ name: body.name ?? provider, asset: assetAddress, decimals, symbol, apyBps, feeBps, admin },
    feeKind: provider === 'aave' ? 'claimable' : 'shares',
    offset: provider === 'morpho' ? Math.max(0, MORPHO_DECIMALS - decimals) : 0,
  });
  const facts = { assetAddress, assetSymbol: symbol, assetDecimals: decimals };
  const vault = await context.change((em) =>
    addVault(
      { em, nowMs: clock.now() },
      { appId: path.app_id, provider, name: body.name, chain, address, adminWalletId, feeBps },
      facts,
    ),
  );
  return earnVaultView(context, vault);
};

export const changeEarnVault: Handler<'changeEarnVault'> = async ({ path, body }, context) => {
  const { chains } = context;
  const vault = await context.read((em) => getVault(em, path.vault_id));
  const isSimulated = chains.has(vault.caip2) && (await chains.earn.rateOf(vault.caip2, vault.address));
  if (!isSimulated) throw notFound('Vault');
  const { apy_bps: apyBps, paused: isPaused, raw_liquidity: rawLiquidity } = body;
  const most = await chains.earn.changeVault(vault.caip2, vault.address, {
    ...{ apyBps, isPaused },
    rawLiquidity: rawLiquidity === undefined ? undefined : BigInt(rawLiquidity),
  });
  if (most !== undefined) {
    throw invalidField('/raw_liquidity', `expected at most \`${most}\`, which is what the vault has`);
  }
  await context.runDueJobs();
  return earnVaultView(context, vault);
};

/** The number of decimals that a token gets if it does not exist yet. */
const NEW_TOKEN_DECIMALS = 18;

function requireAddress(pointer: string, text: string): string {
  const address = readChainAddress('ethereum', text);
  if (address === undefined) throw invalidField(pointer, `expected an EVM address, got \`${text}\``);
  return address;
}

export const addEarnReward: Handler<'addEarnReward'> = async ({ body }, { chains, runDueJobs }) => {
  const caip2 = requireSimulatedEvm(chains, body.chain);
  const address = requireAddress('/address', body.address);
  const tokenAddress = requireAddress('/token_address', body.token_address);
  const rawAmount = BigInt(body.raw_amount);
  if (rawAmount === 0n) throw invalidField('/raw_amount', 'expected an amount above 0');
  const decimals = (await chains.decimalsOf(caip2, tokenAddress)) ?? NEW_TOKEN_DECIMALS;
  const token = { tokenAddress, decimals, symbol: 'RWD' };
  if (!(await chains.earn.addReward(caip2, { address, rawAmount, ...token }))) {
    throw invalidField('/raw_amount', 'expected less: an address is given below 2^208 of a token');
  }
  await runDueJobs();
  const found = await chains.earn.rewards(caip2, address);
  const reward = found?.rewards.find((each) => each.tokenAddress === tokenAddress);
  return {
    ...{ caip2, address, token_address: tokenAddress },
    amount_claimed: String(reward?.rawClaimed ?? 0n),
    amount_unclaimed: String((reward?.rawCumulative ?? 0n) - (reward?.rawClaimed ?? 0n)),
  };
};

/** Returns a vault in the form of the control plane, with its current yield. */
async function earnVaultView({ chains }: ControlContext, vault: EarnVault): Promise<SandboxEarnVault> {
  const rate = await chains.earn.rateOf(vault.caip2, vault.address);
  return {
    ...{ id: vault.id, caip2: vault.caip2, address: vault.address, asset_address: vault.assetAddress },
    ...{ provider: vault.provider, name: vault.name },
    ...{ apy_bps: rate?.apyBps ?? 0, fee_bps: rate?.feeBps ?? vault.feeBps },
  };
}
