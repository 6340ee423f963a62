import { assetsOf } from '../../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import type { RefusedRequest, Why } from '../../ports/refusals.ts';
import { because, listOf, problem, repeat } from './problem.ts';

/** The `data` of an `insufficient_funds` error, as `insufficientFunds` writes it. */
interface Shortfall {
  readonly caip2: string;
  readonly address: string;
  readonly token_address: string | null;
  readonly raw_needed: string;
  readonly raw_balance: string;
}

/** Explains insufficient funds: the needed amount, the balance, and the command that adds the rest. */
export function whyFunds({ code, data }: RefusedRequest): Why | undefined {
  const shortfall = data.shortfall as Shortfall | undefined;
  if (code !== 'insufficient_funds' || shortfall === undefined) return undefined;
  const { caip2, address, token_address: token, raw_needed: needed, raw_balance: present } = shortfall;
  const missing = BigInt(needed) - BigInt(present);
  const chain = chainOfCaip2(caip2);
  const asset = chain && assetsOf(chain).find(({ tokenAddress }) => isSame(tokenAddress, token));
  const evidence = { ...shortfall, raw_missing: String(missing) };
  const again = repeat('Send the request again', {});
  if (chain === undefined || asset === undefined) {
    const of = token === null ? 'the native asset' : `the token \`${token}\``;
    const found = problem({
      subject: `the balance of \`${address}\` on ${caip2}`,
      expected: `${needed} base units of ${of}`,
      came: present,
      next: `Send POST /_sandbox/faucet with \`raw_amount\` "${missing}", which adds the rest.`,
    });
    const named = token === null ? {} : { token_address: token };
    const body = { chain: caip2, address, ...named, raw_amount: String(missing) };
    return because('chain', [found], {
      evidence,
      repairs: [{ kind: 'call', title: 'Add the rest', operation: 'fundAddress', body }, again],
    });
  }
  const { decimals } = asset;
  const rest = unitsOf(missing, decimals);
  const command = `custos faucet ${address} ${rest} --chain ${chain.name}${token === null ? '' : ` --asset ${asset.asset}`}`;
  const found = problem({
    subject: `the balance of \`${address}\` on ${chain.name}`,
    expected: `${unitsOf(needed, decimals)} ${asset.asset}`,
    came: `${unitsOf(present, decimals)} ${asset.asset}`,
    next: `Run \`${command}\`, which adds the rest.`,
  });
  const body = { chain: caip2, address, ...(token === null ? {} : { asset: asset.asset }), amount: rest };
  return because('chain', [found], {
    evidence,
    repairs: [
      { kind: 'call', title: `Add ${rest} ${asset.asset}`, operation: 'fundAddress', body },
      { kind: 'command', title: `Add ${rest} ${asset.asset} in a terminal`, command },
      again,
    ],
  });
}

/** The `data` of an error about a customer of a fiat provider, as `requireCustomer` writes it. */
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
export function whyState({ code, data }: RefusedRequest, { prefix }: { prefix: string }): Why | undefined {
  const customer = data.customer as RefusedCustomer | undefined;
  if (code !== 'invalid_state' || customer === undefined) return undefined;
  const { type, provider, environment, status, terms, requirements_due: due } = customer;
  const id = customer.id.replace(/^did:service:/, `did:${prefix}:`);
  const isUser = type === 'user';
  const checks = isUser ? 'KYC' : 'KYB';
  const path = `${isUser ? `/v1/users/${id}` : `/v1/organizations/${id}`}/${checks.toLowerCase()}`;
  const needsTerms = terms !== 'approved' && due.includes('terms_of_service');
  const outcome = needsTerms ? 'terms_accepted' : 'approved';
  const names = listOf(due.map((name) => `\`${name}\``));
  const found = problem({
    subject: `the ${checks} verification of ${type} \`${id}\` by \`${provider}\` (${environment})`,
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
