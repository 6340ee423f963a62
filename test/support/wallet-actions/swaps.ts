import type { Tables } from '../../../src/domain/tables.ts';
import type { SwapActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../call.ts';
import { chain, fund } from '../fund.ts';
import type { TestSandbox } from '../sandbox.ts';
import { waitSeconds } from '../wait-seconds.ts';

export const base = 'eip155:8453';
export const arbitrum = 'eip155:42161';
export const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
export const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
export const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
export const weth = '0x4200000000000000000000000000000000000006';
export const usdcOnArbitrum = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831';
export const usdcOnSolana = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
export const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
export const ether = 10n ** 18n;

/** A swap on Base. */
export function swapBody(source: string, destination: string, amount: bigint | string, extra: object = {}) {
  return {
    source: { asset_address: source, caip2: base },
    destination: { asset_address: destination },
    base_amount: String(amount),
    ...extra,
  };
}

/** Functions for swap tests on a sandbox that is started later. */
export function swapsIn(sandboxNow: () => TestSandbox) {
  const eventRows = () =>
    sandboxNow()
      .database.orm.em.fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select('payload')
      .orderBy('sequence')
      .execute();
  return {
    /** Creates a wallet with 1 ETH and some USDC, in its smallest units, on Base. */
    async makeWallet(rawUsdc: bigint, extra: object = {}): Promise<Wallet> {
      const sandbox = sandboxNow();
      const { body } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', ...extra } });
      await fund(sandbox, body.address, { chain: 'base', asset: 'eth', rawAmount: ether });
      await fund(sandbox, body.address, { chain: 'base', asset: 'usdc', rawAmount: rawUsdc });
      return body;
    },
    async swap(wallet: Wallet, body: object, options?: CallOptions): Promise<SwapActionResponse> {
      const path = { wallet_id: wallet.id };
      return (await call(sandboxNow(), 'executeWalletSwap', { path, body: body as never }, options)).body;
    },
    async quote(wallet: Wallet, body: object) {
      const path = { wallet_id: wallet.id };
      return (await call(sandboxNow(), 'quoteWalletSwap', { path, body: body as never })).body;
    },
    async refused(
      operation: 'quoteWalletSwap' | 'executeWalletSwap',
      wallet: Pick<Wallet, 'id'>,
      body: object,
      options?: CallOptions,
    ) {
      const path = { wallet_id: wallet.id };
      const answer = await refusal(sandboxNow(), operation, { path, body } as never, options);
      return { status: answer.status, code: answer.body.code, error: answer.body.error };
    },
    async actionOf({ id, wallet_id }: SwapActionResponse): Promise<SwapActionResponse> {
      const path = { wallet_id, action_id: id };
      const input = { path, query: { include: 'steps' } } as const;
      return (await call(sandboxNow(), 'getWalletAction', input)).body as SwapActionResponse;
    },
    wait: (seconds: number) => waitSeconds(sandboxNow(), seconds),
    /** Returns the balances of an address on Base. Null is the native asset. */
    async holds(address: string, ...tokens: (string | null)[]): Promise<readonly bigint[]> {
      return sandboxNow().chains.find(chain('base').caip2)!.balances(address, tokens);
    },
    /** Returns the payloads of all events that name an action, in order. */
    async eventsOf(actionId: string): Promise<Record<string, unknown>[]> {
      const rows = await eventRows();
      return rows
        .filter(({ payload }) => payload.includes(actionId))
        .map(({ payload }) => JSON.parse(payload));
    },
  };
}
