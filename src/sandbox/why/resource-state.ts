import { assetsOf } from '../../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import type { RefusedRequest, Why } from '../../ports/requests.ts';

/** The `data` of `insufficient_funds`, as `insufficientFunds` writes it. */
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
  if (chain === undefined || asset === undefined) {
    const of = token === null ? 'the native asset' : `the token \`${token}\``;
    return {
      kind: 'chain',
      hint: `needs ${needed} base units of ${of} on ${caip2}, and \`${address}\` has ${present}: POST /_sandbox/faucet with \`raw_amount\` "${missing}" adds the rest`,
      evidence,
    };
  }
  const { decimals } = asset;
  const named = token === null ? '' : ` --asset ${asset.asset}`;
  return {
    kind: 'chain',
    hint: `needs ${unitsOf(needed, decimals)} ${asset.asset} on ${chain.name}, and \`${address}\` has ${unitsOf(present, decimals)}: run \`custos faucet ${address} ${unitsOf(missing, decimals)} --chain ${chain.name}${named}\``,
    evidence,
  };
}

/** Explains that customers of a fiat provider are not verified yet, and what they still have to do. */
export function whyState({ code, data }: RefusedRequest, { prefix }: { prefix: string }): Why | undefined {
  const customer = data.customer as
    | {
        readonly type: string;
        readonly id: string;
        readonly terms: string;
        readonly requirements_due: string[];
      }
    | undefined;
  if (code !== 'invalid_state' || customer === undefined) return undefined;
  const { type, id, terms, requirements_due: due } = customer;
  const [path, checks] =
    type === 'user'
      ? [`/v1/users/${id.replace(/^did:service:/, `did:${prefix}:`)}`, 'kyc']
      : [`/v1/organizations/${id}`, 'kyb'];
  const names = due.map((name) => `\`${name}\``).join(', ');
  const begin = names === '' ? '' : `still due: \`requirements_due\` is ${names}; `;
  const needsTerms = terms !== 'approved' && due.includes('terms_of_service');
  const hint = needsTerms
    ? `${begin}POST ${path}/${checks}/tos returns the link where the terms of service are accepted`
    : `${begin}POST ${path}/${checks}/links returns the links of the verification, GET ${path}/${checks} its state`;
  const outcome = needsTerms ? 'terms_accepted' : 'approved';
  return {
    kind: 'validation',
    hint: `${hint}; in tests POST /_sandbox/verifications with \`"outcome": "${outcome}"\` decides`,
    evidence: { requirements_due: due, terms },
  };
}

function isSame(a: string | null, b: string | null): boolean {
  return a === b || (a !== null && b !== null && /^0x/i.test(a) && a.toLowerCase() === b.toLowerCase());
}

/** Converts base units to a decimal number of units, without trailing zeros. */
function unitsOf(raw: string | bigint, decimals: number): string {
  const digits = String(raw).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const part = digits.slice(digits.length - decimals).replace(/(?<!0)0+$/, '');
  return part === '' ? whole : `${whole}.${part}`;
}
