import { assetsOf } from '../../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import type { Problem, RefusedRequest, Repair, Why } from '../../ports/refusals.ts';
import { problemsOfDenial } from './policy.ts';
import { because, listOf, namedId, problem, quote, repeat, resourceIn, timeOf } from './problem.ts';
import type { KnownOperation } from './unknown-path.ts';

/** The `data` of an `insufficient_funds` error, as `insufficientFunds` writes it. */
interface Shortfall {
  readonly caip2: string;
  readonly address: string;
  readonly token_address: string | null;
  readonly raw_needed: string;
  readonly raw_balance: string;
}

/**
 * Explains insufficient funds: the needed amount, the balance, and the command that adds the rest. A policy that would
 * deny the request with these funds is explained as well.
 */
export function whyFunds(refused: RefusedRequest): Why | undefined {
  const { code, data, resources } = refused;
  const shortfall = data.shortfall as Shortfall | undefined;
  if (code !== 'insufficient_funds' || shortfall === undefined) return undefined;
  const { caip2, address, token_address: token, raw_needed: needed, raw_balance: present } = shortfall;
  const missing = BigInt(needed) - BigInt(present);
  const chain = chainOfCaip2(caip2);
  const asset = chain && assetsOf(chain).find(({ tokenAddress }) => isSame(tokenAddress, token));
  const holder = `the balance of ${resources?.names.has(address) === true ? 'wallet ' : ''}${namedId(address, refused)}`;
  const evidence = { ...shortfall, raw_missing: String(missing) };
  const denial = resources?.denial;
  const denied: readonly Problem[] = (denial === undefined ? [] : problemsOfDenial(denial, refused)).map(
    (each, index) =>
      index > 0
        ? each
        : { ...each, text: `A policy denies the request, also with enough funds. ${each.text}` },
  );
  // If the wallet only gets the funds, the next attempt will be denied.
  const again: readonly Repair[] = denied.length > 0 ? [] : [repeat('Send the request again', {})];
  if (chain === undefined || asset === undefined) {
    const of = token === null ? 'the native asset' : `the token \`${token}\``;
    const found = problem({
      subject: `${holder} on ${caip2}`,
      expected: `${needed} base units of ${of}`,
      came: present,
      next: `Send POST /_sandbox/faucet with \`raw_amount\` "${missing}", which adds the rest.`,
    });
    const named = token === null ? {} : { token_address: token };
    const body = { chain: caip2, address, ...named, raw_amount: String(missing) };
    return because('chain', [found, ...denied], {
      evidence,
      repairs: [{ kind: 'call', title: 'Add the rest', operation: 'fundAddress', body }, ...again],
    });
  }
  const { decimals } = asset;
  const symbol = asset.asset.toUpperCase();
  const rest = unitsOf(missing, decimals);
  // A wallet that lacks an asset often lacks gas as well, which only the next attempt would show.
  const hasGas = assetsOf(chain).some(({ tokenAddress }) => tokenAddress === null);
  const of = `${token === null ? '' : ` --asset ${asset.asset}`}${hasGas ? ' --gas' : ''}`;
  const command = `custos faucet ${address} ${rest} --chain ${chain.name}${of}`;
  const title = `Add ${rest} ${symbol}${hasGas ? ' and gas' : ''}`;
  const found = problem({
    subject: `${holder} on ${chain.name}`,
    expected: `${unitsOf(needed, decimals)} ${symbol}`,
    came: `${unitsOf(present, decimals)} ${symbol}`,
    next: `Run \`${command}\`, which adds the rest${hasGas ? ' and the gas for fees' : ''}.`,
  });
  const named = {
    ...(token === null ? {} : { asset: asset.asset }),
    ...(hasGas ? { with_gas: true } : {}),
  };
  const body = { chain: caip2, address, ...named, amount: rest };
  return because('chain', [found, ...denied], {
    evidence,
    repairs: [
      { kind: 'call', title, operation: 'fundAddress', body },
      { kind: 'command', title: `${title} in a terminal`, command },
      ...again,
    ],
  });
}

/** Explains that a wallet is archived. The API reports an archived wallet as not found. */
export function whyArchived(refused: RefusedRequest, { operations }: Operations): Why | undefined {
  const archived = refused.resources?.archived;
  if (refused.code !== 'not_found' || archived === undefined) return undefined;
  const { walletId, atMs } = archived;
  const found = problem({
    subject: resourceIn(refused, operations) ?? 'the wallet',
    expected: 'a wallet in use',
    came: `one that was archived at ${timeOf(atMs)}, which the API treats as absent`,
    next: `Restore it in the inspector, with \`custos call restoreWallet ${walletId}\` or, in a data folder, with \`custos wallets restore ${walletId} --data <folder>\`; a read with \`include_archived=true\` still shows it.`,
  });
  return because('validation', [found], {
    evidence: { wallet_id: walletId, archived_at_ms: atMs },
    repairs: [
      {
        kind: 'call',
        title: 'Restore the wallet',
        operation: 'restoreWallet',
        path: { wallet_id: walletId },
      },
      repeat('Send the request again', {}),
    ],
  });
}

/** Explains the id of a wallet that is a misspelled id of another wallet of the app. */
export function whyUnknownWallet(refused: RefusedRequest, { operations }: Operations): Why | undefined {
  const nearest = refused.resources?.nearestWallet;
  if (refused.code !== 'not_found' || nearest === undefined) return undefined;
  const template = operations.find(({ id }) => id === refused.operation)?.path.split('/') ?? [];
  const at = template.indexOf('{wallet_id}');
  const segments = refused.path.split('/');
  if (at === -1 || segments[at] === undefined) return undefined;
  const given = segments[at];
  segments[at] = encodeURIComponent(nearest);
  const found = problem({
    subject: `the wallet ${quote(decodeURIComponent(given))}`,
    expected: 'the id of a wallet of this app',
    came: 'an id that no wallet has',
    next: `Did you mean \`${nearest}\`?`,
    at: { in: 'path', pointer: '' },
  });
  return because('validation', [found], {
    evidence: { wallet_id: decodeURIComponent(given), nearest },
    repairs: [repeat(`Send it again to \`${nearest}\``, { changes: { path: segments.join('/') } })],
  });
}

const usedNonce = /nonce too low: next nonce (\d+), got (\d+)/;

/** Explains a nonce that an earlier transaction of the wallet has used. */
export function whyNonce(refused: RefusedRequest, { operations }: Operations): Why | undefined {
  const [, next, sent] = usedNonce.exec(refused.message) ?? [];
  if (refused.code !== 'transaction_broadcast_failure' || next === undefined) return undefined;
  const pointer = '/params/transaction/nonce';
  const { params } = (refused.body ?? {}) as { params?: { transaction?: { nonce?: unknown } } };
  const isSent = params?.transaction?.nonce !== undefined;
  const found = problem({
    subject: `the nonce of ${resourceIn(refused, operations) ?? 'the wallet'}`,
    expected: `${next}, the next one of the chain, or none`,
    came: `${sent}, which an earlier transaction has used`,
    next: `Leave \`nonce\` out, so that the server chooses it, or send ${next}.`,
    at: isSent ? { in: 'body', pointer } : undefined,
  });
  const changes = { body: [{ op: 'remove', path: pointer }] } as const;
  return because('chain', [found], {
    evidence: { next_nonce: next, nonce: sent },
    repairs: isSent ? [repeat('Send again without `nonce`', { changes })] : [],
  });
}

const endedIntent = /^the intent cannot be authorized or rejected: it is (\w+)$/;

/** Explains that an intent has ended, for example because it has expired. */
export function whyEndedIntent(refused: RefusedRequest, { operations }: Operations): Why | undefined {
  const [, status] = endedIntent.exec(refused.message) ?? [];
  if (refused.code !== 'invalid_state' || status === undefined) return undefined;
  const found = problem({
    subject: resourceIn(refused, operations) ?? 'the intent',
    expected: 'the status `pending`',
    came: `\`${status}\``,
    next:
      status === 'expired'
        ? 'Propose the change again with a new intent, and collect its signatures before `expires_at`.'
        : 'Read the intent: it has ended, so propose the change again if it is still wanted.',
  });
  return because('validation', [found], { evidence: { status } });
}

interface Operations {
  readonly operations: readonly KnownOperation[];
}

/** The \`data\` of a refusal about a customer of a fiat provider, as \`requireCustomer\` writes it. */
interface RefusedCustomer {
  readonly type: string;
  readonly id: string;
  readonly provider: string;
  readonly environment: string;
  readonly status: string;
  /** What the request requires of the customer, such as `payout_fiat`. */
  readonly capability: string;
  readonly capability_status: string;
  readonly terms: string;
  readonly requirements_due: string[];
}

/** Explains that a customer of a fiat provider is not verified yet, and what the customer still has to do. */
export function whyState(refused: RefusedRequest, { prefix }: { prefix: string }): Why | undefined {
  const { code, data, resources } = refused;
  const customer = data.customer as RefusedCustomer | undefined;
  if (code !== 'invalid_state' || customer === undefined) return undefined;
  const { type, provider, environment, status, terms, requirements_due: due } = customer;
  const id = customer.id.replace(/^did:service:/, `did:${prefix}:`);
  const isUser = type === 'user';
  const name = resources?.names.get(customer.id);
  const named = namedId(id, { resources: { names: new Map(name === undefined ? [] : [[id, name]]) } });
  const checks = isUser ? 'KYC' : 'KYB';
  const path = `${isUser ? `/v1/users/${id}` : `/v1/organizations/${id}`}/${checks.toLowerCase()}`;
  const needsTerms = terms !== 'approved' && due.includes('terms_of_service');
  const outcome = needsTerms ? 'terms_accepted' : 'approved';
  const names = listOf(due.map((name) => `\`${name}\``));
  const found = problem({
    subject: `the ${checks} verification of ${type} ${named} by \`${provider}\` (${environment})`,
    expected: `the status \`active\`, with \`${customer.capability}\``,
    came: `\`${status}\`${status === 'active' ? `, with \`${customer.capability}\` as \`${customer.capability_status}\`` : ''}${names === '' ? '' : `, where \`requirements_due\` is ${names}`}`,
    next: `${
      needsTerms
        ? `POST ${path}/tos returns the link where the terms of service are accepted`
        : `POST ${path}/links returns the links of the verification, GET ${path} its state`
    }; in tests POST /_sandbox/verifications with \`"outcome": "${outcome}"\` decides.`,
  });
  const entity = isUser ? { user_id: id } : { organization_id: id };
  const decisions = needsTerms ? ['terms_accepted', 'approved'] : ['approved'];
  return because('validation', [found], {
    evidence: { requirements_due: due, terms, status },
    repairs: [
      ...decisions.map(
        (each) =>
          ({
            kind: 'call',
            title: each === 'approved' ? `Approve the ${checks} verification` : 'Accept the terms of service',
            operation: 'decideVerification',
            body: { ...entity, environment, outcome: each },
          }) as const,
      ),
      repeat('Send the request again', {}),
    ],
  });
}

function isSame(a: string | null, b: string | null): boolean {
  return a === b || (a !== null && b !== null && /^0x/i.test(a) && a.toLowerCase() === b.toLowerCase());
}

/** Converts base units to a decimal number of whole units, without trailing zeros. */
function unitsOf(raw: string | bigint, decimals: number): string {
  const digits = String(raw).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const part = digits.slice(digits.length - decimals).replace(/(?<!0)0+$/, '');
  return part === '' ? whole : `${whole}.${part}`;
}
