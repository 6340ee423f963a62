import { assetNamed, assetsOf } from '../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../engine/assets/known-chains.ts';
import { invalidField } from '../errors.ts';
import type { ControlContext } from './control-plane.ts';
import { requireSimulated } from './controllable-chains.ts';
import type { FundSandboxAddressRequest } from './generated/schemas.ts';
import { nearestName } from './why/nearest.ts';
import { listOf } from './why/problem.ts';

// Deposits from the faucet of the simulated chains.

const pointers = { address: '/address', tokenAddress: '/token_address', rawAmount: '/raw_amount' } as const;

type Faucet = Pick<ControlContext, 'chains' | 'runDueJobs'>;

/** Reads the balance of an address in base units. A `tokenAddress` of null means the native asset. */
export type ReadBalance = (caip2: string, address: string, tokenAddress: string | null) => Promise<bigint>;

/**
 * Brings the balance of an address up to the amount. Returns whether it was lower.
 *
 * @throws ApiError invalid_data
 */
export async function raiseBalance(
  body: FundSandboxAddressRequest,
  context: Faucet,
  readBalance: ReadBalance,
): Promise<boolean> {
  const deposit = await readDeposit(body, context);
  const { caip2, tokenAddress, address, rawAmount } = deposit;
  const held = await readBalance(caip2, address, tokenAddress);
  if (held >= rawAmount) return false;
  await payOut({ ...deposit, rawAmount: rawAmount - held }, context);
  return true;
}

/**
 * Reads a deposit from the faucet.
 *
 * @throws ApiError invalid_data
 */
export async function readDeposit(body: FundSandboxAddressRequest, { chains }: Faucet) {
  const caip2 = requireSimulated(chains, body.chain);
  const { address, symbol } = body;
  const tokenAddress = tokenAddressOf(caip2, body);
  // CHOICE: by default, a new token has the number of decimals that is usual on its chain.
  const defaultDecimals = caip2.startsWith('eip155:') ? 18 : 6;
  const decimals = (await chains.decimalsOf(caip2, tokenAddress)) ?? body.decimals ?? defaultDecimals;
  return { caip2, address, symbol, tokenAddress, decimals, rawAmount: rawAmountOf(body, decimals) };
}

/**
 * Makes a deposit.
 *
 * @throws ApiError invalid_data for a deposit that the chain rejects.
 */
export async function payOut(
  { caip2, ...deposit }: Awaited<ReturnType<typeof readDeposit>>,
  { chains, runDueJobs }: Faucet,
) {
  const funded = await chains.fund(caip2, deposit);
  if ('fault' in funded) throw invalidField(pointers[funded.fault], funded.message);
  await runDueJobs();
  return funded;
}

/** The native asset for the fees of several transactions, in units, by the namespace of the chain. */
const gasUnits: Readonly<Record<string, string>> = { eip155: '0.1', solana: '0.1', tron: '100' };

/**
 * Adds enough of the native asset for the fees of several transactions. On a chain without one, such as Tempo, fees are
 * paid in tokens, and nothing is added.
 *
 * @throws ApiError invalid_data
 */
export async function payGas(
  { chain, address }: Pick<FundSandboxAddressRequest, 'chain' | 'address'>,
  context: Faucet,
): Promise<void> {
  const caip2 = requireSimulated(context.chains, chain);
  const known = chainOfCaip2(caip2);
  if (known !== undefined && known.native === undefined) return;
  const [namespace = ''] = caip2.split(':');
  await payOut(await readDeposit({ chain, address, amount: gasUnits[namespace] ?? '1' }, context), context);
}

/**
 * Returns the amount in base units. The body has exactly one of `amount` and `raw_amount`.
 *
 * @throws ApiError invalid_data
 */
function rawAmountOf(
  body: { readonly amount?: string | undefined; readonly raw_amount?: string | undefined },
  decimals: number,
): bigint {
  const { amount, raw_amount: raw } = body;
  if ((amount === undefined) === (raw === undefined)) {
    throw invalidField('/amount', 'expected either `amount` or `raw_amount`');
  }
  if (raw !== undefined) return BigInt(raw);
  const [whole = '', fraction = ''] = amount!.split('.');
  if (fraction.length > decimals) {
    throw invalidField('/amount', `expected at most ${decimals} decimal places, got ${fraction.length}`);
  }
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}

/**
 * Returns the address of the token that the body names, by address or by asset name. Returns null for the native
 * asset.
 *
 * @throws ApiError invalid_data
 */
function tokenAddressOf(
  caip2: string,
  body: { readonly asset?: string | undefined; readonly token_address?: string | null | undefined },
): string | null {
  const { asset, token_address: tokenAddress } = body;
  if (asset === undefined) return tokenAddress ?? null;
  if (tokenAddress !== undefined) throw invalidField('/asset', 'expected either `asset` or `token_address`');
  const chain = chainOfCaip2(caip2);
  const known = chain && assetNamed(chain, asset);
  if (known === undefined) {
    const names = chain === undefined ? [] : assetsOf(chain).map((each) => each.asset);
    const nearest = nearestName(asset, names);
    const next =
      nearest === undefined ? 'any other token is named by its address' : `did you mean \`${nearest}\`?`;
    const on = chain === undefined ? caip2 : chain.name;
    const list = names.length === 0 ? 'that has a name' : `(${listOf(names.map((name) => `\`${name}\``))})`;
    throw invalidField('/asset', `expected an asset of \`${on}\` ${list}, got \`${asset}\`; ${next}`);
  }
  return known.tokenAddress;
}
