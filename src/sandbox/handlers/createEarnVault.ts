import { assetNamed } from '../../assets/known-assets.ts';
import { chainOfCaip2 } from '../../assets/known-chains.ts';
import { findApp } from '../../domain/access/apps/find-app.ts';
import { addVault, adminAddressOf } from '../../domain/money/earn/add-vault.ts';
import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { earnVaultView } from '../earn-vault-view.ts';
import { requireSimulatedEvm } from '../require-simulated.ts';

/** Decimals of the shares of `morpho` vaults. */
const MORPHO_DECIMALS = 18;

export const run: Handler<'createEarnVault'> = async ({ path, body }, context) => {
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
