import type { SqlEntityManager } from '@mikro-orm/sql';
import type { App } from '../domain/access/apps/app.entity.ts';
import { withoutTestCodes } from '../domain/access/apps/app.ts';
import { findApp } from '../domain/access/apps/find-app.ts';
import type { RecordedEvent } from '../domain/base/events/events.ts';
import type { EarnVault } from '../domain/money/earn/earn-vault.ts';
import { showUserCode } from '../domain/wallets/oauth/device-codes.ts';
import type { OauthDeviceCode } from '../domain/wallets/oauth/oauth.entity.ts';
import { findDenial } from '../domain/wallets/wallet-uses/find-uses.ts';
import { assetNamed } from '../engine/assets/known-assets.ts';
import { chainNamed, chainOfCaip2 } from '../engine/assets/known-chains.ts';
import { ApiError, invalidField } from '../errors.ts';
import type {
  ControlContext,
  ControllableChains,
  ControllableClock,
  HostedVerification,
  PolicyAnalysis,
} from './control-plane.ts';
import type {
  PolicyTrace,
  SandboxApp,
  SandboxClock,
  SandboxDeviceCode,
  SandboxEarnVault,
  SandboxEvent,
  SandboxVerificationPage,
} from './generated/schemas.ts';

/** The control plane's representation of an app, without its secrets. */
export function appView(app: App): SandboxApp {
  return {
    id: app.id,
    name: app.name,
    created_at_ms: app.createdAtMs,
    settings: withoutTestCodes(app.settings),
  };
}

/**
 * CHOICE: the clock can be set up to a century before the last instant that the contract's formats can represent,
 * 9999-12-31. Whatever is planned or expires after the time that was set can be represented as well.
 */
export const LAST_MS = Date.UTC(9900, 0, 1);

/** The control plane's representation of the clock. */
export function clockView(clock: ControllableClock): SandboxClock {
  const nowMs = clock.now();
  return { now_ms: nowMs, now: new Date(nowMs).toISOString(), frozen: clock.isFrozen };
}

/** A device code without the code of the device. */
export async function deviceCodeView(
  em: SqlEntityManager,
  code: OauthDeviceCode,
  nowMs: number,
): Promise<SandboxDeviceCode> {
  const app = await findApp(em, code.appId);
  return {
    user_code: showUserCode(code.userCode),
    app_id: app.id,
    app_name: app.name,
    status: code.expiresAtMs <= nowMs && code.status !== 'redeemed' ? 'expired' : code.status,
    expires_at_ms: code.expiresAtMs,
  };
}

/** A vault with what it earns now. */
export async function earnVaultView({ chains }: ControlContext, vault: EarnVault): Promise<SandboxEarnVault> {
  const rate = await chains.earn.rateOf(vault.caip2, vault.address);
  return {
    ...{ id: vault.id, caip2: vault.caip2, address: vault.address, asset_address: vault.assetAddress },
    ...{ provider: vault.provider, name: vault.name },
    ...{ apy_bps: rate?.apyBps ?? 0, fee_bps: rate?.feeBps ?? vault.feeBps },
  };
}

/** The control plane's representation of an event, with the payload that endpoints receive. */
export function eventView(event: RecordedEvent, { events }: Pick<ControlContext, 'events'>): SandboxEvent {
  const payload = events.write(event.payload) as SandboxEvent['payload'];
  return {
    id: event.id,
    app_id: event.appId,
    type: payload.type,
    created_at_ms: event.createdAtMs,
    payload,
  };
}

/**
 * The verification to which a link leads.
 *
 * @throws ApiError not_found
 */
export async function findVerificationPage(
  { fiat }: Pick<ControlContext, 'fiat'>,
  token: string,
): Promise<HostedVerification> {
  const page = await fiat.page(token);
  if (page === undefined) throw new ApiError('not_found', 'the link is not known');
  return page;
}

/** What the hosted page shows. */
export function verificationPageView({
  kind,
  environment,
  snapshot,
  redirectUri,
}: HostedVerification): SandboxVerificationPage {
  const { terms, verification } = snapshot;
  const offers = [
    ...(terms.link === undefined ? [] : ['accept_terms' as const]),
    ...(verification.link === undefined ? [] : ['complete' as const, 'decline' as const]),
  ];
  return {
    kind,
    environment,
    status: snapshot.status,
    terms: terms.status,
    verification: verification.status,
    actions: offers,
    requirements_due: [...snapshot.requirementsDue],
    rejection_reasons: [...(verification.rejectionReasons ?? [])],
    redirect_uri: redirectUri,
  };
}

/** The amount in base units; the body has exactly one of `amount` and `raw_amount`. Throws ApiError invalid_data. */
export function rawAmountOf(
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

/** The token address, given directly or by asset name; null for the native asset. Throws ApiError invalid_data. */
export function tokenAddressOf(
  caip2: string,
  body: { readonly asset?: string | undefined; readonly token_address?: string | null | undefined },
): string | null {
  const { asset, token_address: tokenAddress } = body;
  if (asset === undefined) return tokenAddress ?? null;
  if (tokenAddress !== undefined) throw invalidField('/asset', 'expected either `asset` or `token_address`');
  const chain = chainOfCaip2(caip2);
  const known = chain && assetNamed(chain, asset);
  if (known === undefined) {
    throw invalidField('/asset', `\`${asset}\` has no known address on this chain; use \`token_address\``);
  }
  return known.tokenAddress;
}

/** The CAIP-2 id of a simulated chain, given by id or name. Throws ApiError invalid_data. */
export function requireSimulated(chains: ControllableChains, chain: string): string {
  const caip2 = chainNamed(chain)?.caip2 ?? chain;
  if (chains.has(caip2)) return caip2;
  throw invalidField('/chain', `expected the CAIP-2 id or name of a simulated chain, got \`${chain}\``);
}

/** The CAIP-2 id of a simulated EVM chain. Throws ApiError invalid_data. */
export function requireSimulatedEvm(chains: ControllableChains, chain: string): string {
  const caip2 = requireSimulated(chains, chain);
  if (caip2.startsWith('eip155:')) return caip2;
  throw invalidField('/chain', `expected an EVM chain, got \`${chain}\``);
}

/**
 * The trace of a denial, by its own id or by the id of the request.
 *
 * @throws ApiError not_found
 */
export function policyTrace(id: string, { analyze }: PolicyAnalysis): Promise<PolicyTrace> {
  return analyze(async ({ em, onlyAppId }) => {
    const use = await findDenial(em, id, onlyAppId);
    return {
      id: use.traceId,
      app_id: use.appId,
      wallet_id: use.walletId,
      operation: use.operation,
      method: use.method,
      request_id: use.requestId,
      judged_at_ms: use.judgedAtMs,
      decision: 'denied',
      policy_ids: [...use.policyIds],
      request: (use.request as PolicyTrace['request'] | undefined) ?? null,
      policies: (use.trace as PolicyTrace['policies'] | undefined) ?? null,
    };
  });
}
