import { connectBridge } from '../../../src/adapters/bridge/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import type { FiatProvider } from '../../../src/ports/fiat.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import type { FiatControls } from '../../../src/sandbox/simulated/fiat/providers.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { testUsdc } from './bridge-handlers.ts';
import { type BridgeService, openBridgeService } from './bridge-service.ts';

/** A simulated bank on simulated chains. */
export interface BankWorld extends AsyncDisposable {
  readonly bank: FiatProvider;
  readonly chains: SimulatedChains;
  readonly controls: FiatControls;
  readonly clock: { now(): number };
  pass(ms: number): void;
  /** Pays USDC from a wallet that has enough. */
  pay(wallet: string, address: string, rawAmount: bigint): Promise<void>;
}

export function openBankWorld(): BankWorld {
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { now: () => nowMs };
  const chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: undefined });
  let drawn = 0;
  const ids = { uuid: () => `00000000-0000-4000-8000-${String(++drawn).padStart(12, '0')}` };
  const { providers, controls } = chains.fiat({
    ...{ ids, prices: fixedPrices, supports: () => true, environments: ['sandbox'] },
    pageOf: (token) => `https://bank.example/${token}`,
  });
  const { caip2, tokenAddress, decimals } = testUsdc;
  return {
    ...{ bank: providers.find('bridge', 'sandbox')!, chains, controls, clock },
    pass: (ms) => {
      nowMs += ms;
    },
    async pay(payer, address, rawAmount) {
      await chains.fund(caip2, { address: payer, tokenAddress, rawAmount, decimals });
      await chains.fund(caip2, { address, payer, tokenAddress, rawAmount });
    },
    [Symbol.asyncDispose]: () => chains.close(),
  };
}

/** A provider over REST, in front of a simulated bank. */
interface BridgeWorld extends AsyncDisposable {
  readonly provider: FiatProvider;
  readonly service: BridgeService;
}

export async function openBridgeWorld(
  { bank, clock }: Pick<BankWorld, 'bank' | 'clock'>,
  options: Partial<Parameters<typeof connectBridge>[1]> & {
    readonly webhookKey?: Parameters<typeof connectBridge>[0][number]['webhookKey'];
  } = {},
): Promise<BridgeWorld> {
  const { webhookKey, ...rest } = options;
  const service = await openBridgeService(bank, clock);
  const { baseUrl, apiKey } = service;
  const settings = { environment: 'sandbox', baseUrl, apiKey, webhookKey } as const;
  const provider = connectBridge([settings], { clock, log: silentLog, ...rest }).find('bridge', 'sandbox')!;
  return { provider, service, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
}
