import { type Faults, items } from './checks.ts';

/** The maximum fees that the server itself sets on a chain, in place of the defaults: wei per gas, gas, and wei. */
export interface FeeCeilings {
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
  readonly gas?: bigint;
  readonly fee?: bigint;
}

/** The nodes of one chain, the preferred one first. */
export interface RpcEndpoints {
  readonly caip2: string;
  readonly urls: readonly string[];
  readonly ceilings?: FeeCeilings;
  /** The number of blocks after which a deposit is final. With 0, deposits are not followed. */
  readonly confirmations?: number;
  /**
   * The pause before nodes that disagree are queried again, in ms. It is not a setting, because the default suits
   * every chain.
   */
  readonly compareAgainMs?: number;
}

interface ChainEntries {
  readonly entries: readonly string[];
  /** The chains that have nodes; undefined in a signer, which does not connect to chains. */
  readonly endpoints?: readonly RpcEndpoints[];
}

const WEI_PER_GWEI = 1_000_000_000n;
const CEILINGS: Readonly<Record<string, (value: bigint) => FeeCeilings>> = {
  price_gwei: (value) => ({ maxFeePerGas: value * WEI_PER_GWEI }),
  tip_gwei: (value) => ({ maxPriorityFeePerGas: value * WEI_PER_GWEI }),
  gas: (value) => ({ gas: value }),
  fee_gwei: (value) => ({ fee: value * WEI_PER_GWEI }),
};

/** Reads ceilings, in entries such as `eip155:1=price_gwei:300,gas:5000000`. */
export function ceilingsByChain(
  faults: Faults,
  name: string,
  { entries, endpoints }: ChainEntries,
): ReadonlyMap<string, FeeCeilings> {
  const byChain = new Map<string, FeeCeilings>();
  for (const entry of entries) {
    const [caip2 = '', list = ''] = entry.split(/=(.*)/s);
    if (!isEvmChain(caip2, endpoints)) {
      const which = endpoints === undefined ? '' : ' that has nodes';
      faults.push(`${name}: expected the id of an EVM chain${which}, got \`${caip2}\``);
    }
    for (const item of items(list)) {
      const [, key = '', digits = ''] = /^([a-z_]+):([1-9][0-9]{0,30})$/.exec(item) ?? [];
      const read = Object.hasOwn(CEILINGS, key) ? CEILINGS[key] : undefined;
      if (read === undefined) {
        const known = Object.keys(CEILINGS).join(', ');
        faults.push(`${name}: expected \`<name>:<whole number>\` with one of ${known}, got \`${item}\``);
      } else byChain.set(caip2, { ...byChain.get(caip2), ...read(BigInt(digits)) });
    }
  }
  return byChain;
}

function isEvmChain(caip2: string, endpoints: readonly RpcEndpoints[] | undefined): boolean {
  const isKnown = endpoints?.some((each) => each.caip2 === caip2) ?? true;
  return isKnown && /^eip155:[1-9]\d{0,15}$/.test(caip2);
}

/** Adds fee ceilings to the endpoints of the chains that the entries name. */
export function feeCeilings(
  faults: Faults,
  name: string,
  { entries, endpoints }: Required<ChainEntries>,
): readonly RpcEndpoints[] {
  const byChain = ceilingsByChain(faults, name, { entries, endpoints });
  return endpoints.map((each) => {
    const ceilings = byChain.get(each.caip2);
    return ceilings === undefined ? each : { ...each, ceilings };
  });
}

/** Sets the confirmations of chains that have nodes, from entries such as `eip155:1=32` or `eip155:1=off`. */
export function confirmations(
  faults: Faults,
  name: string,
  { entries, endpoints }: Required<ChainEntries>,
): readonly RpcEndpoints[] {
  const byChain = new Map<string, number>();
  for (const entry of entries) {
    const [caip2 = '', blocks = ''] = entry.split(/=(.*)/s);
    if (!endpoints.some((each) => each.caip2 === caip2)) {
      faults.push(`${name}: expected the id of a chain that has nodes, got \`${caip2}\``);
    }
    if (/^([1-9]\d{0,3}|off)$/.test(blocks)) byChain.set(caip2, blocks === 'off' ? 0 : Number(blocks));
    else faults.push(`${name}: expected \`off\` or a number of blocks up to 9999, got \`${blocks}\``);
  }
  return endpoints.map((each) => {
    const blocks = byChain.get(each.caip2);
    return blocks === undefined ? each : { ...each, confirmations: blocks };
  });
}

/**
 * Parses entries such as `eip155:1=https://a.example,https://b.example`. No fault quotes a URL, because URLs may
 * contain API keys.
 */
export function rpcEndpoints(
  faults: Faults,
  name: string,
  entries: readonly string[],
): readonly RpcEndpoints[] {
  const chains = new Set<string>();
  return entries.map((entry) => {
    const [caip2 = '', list = ''] = entry.split(/=(.*)/s);
    const urls = items(list);
    if (!/^(eip155:[1-9]\d{0,15}|solana:[-_a-zA-Z0-9]{1,32})$/.test(caip2)) {
      faults.push(
        `${name}: expected the CAIP-2 id of an EVM or Solana chain before \`=\`, e.g. \`eip155:1=https://…\``,
      );
    } else if (chains.has(caip2)) {
      faults.push(`${name}: expected \`${caip2}\` once; list several endpoints as \`${caip2}=<url>,<url>\``);
    }
    chains.add(caip2);
    const areUrls = urls.every((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
    if (urls.length === 0 || !areUrls) faults.push(`${name}: expected http(s) URLs after \`${caip2}=\``);
    return { caip2, urls };
  });
}

/** A real chain that a simulated chain continues after a block. Without a block, it continues after the latest one. */
export interface ForkEntry {
  readonly caip2: string;
  readonly url: string;
  readonly block?: number | undefined;
}

/** Parses entries such as `eip155:1=https://a.example@23000000`. Faults never repeat URLs. */
export function forks(faults: Faults, name: string, entries: readonly string[]): readonly ForkEntry[] {
  const parsed = entries.map((entry) => {
    const [, caip2 = '', url = '', block] = /^([^=]*)=(.*?)(?:@(\d{1,15}))?$/s.exec(entry) ?? [];
    if (!/^eip155:[1-9]\d{0,15}$/.test(caip2)) {
      faults.push(
        `${name}: expected the CAIP-2 id of an EVM chain before \`=\`, e.g. \`eip155:1=https://…\``,
      );
    } else if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      faults.push(`${name}: expected an http(s) URL after \`${caip2}=\`, and \`@\` before a block`);
    }
    return { caip2, url, block: block === undefined ? undefined : Number(block) };
  });
  const named = parsed.map(({ caip2 }) => caip2);
  const repeated = named.find((caip2, index) => named.indexOf(caip2) !== index);
  if (repeated !== undefined) faults.push(`${name}: expected \`${repeated}\` once`);
  return parsed;
}

/** The router of a chain, and the token that wraps the native asset, if it is named. */
export interface RouterEntry {
  readonly router: string;
  readonly wrapped?: string;
}

/**
 * Parses entries such as `eip155:1=0x7a25…` or `eip155:1=0x7a25…,0xC02a…`, one router for each chain that has nodes.
 */
export function routers(
  faults: Faults,
  name: string,
  { entries, ...given }: ChainEntries,
): ReadonlyMap<string, RouterEntry> {
  const wrapped = new Map<string, string>();
  const found = contracts(faults, name, {
    ...{ ...given, kind: 'router' },
    entries: entries.map((entry) => {
      const [router = '', token] = entry.split(/,(.*)/s);
      if (token === undefined) return router;
      if (!ADDRESS.test(token)) {
        faults.push(`${name}: expected the address of the wrapped asset after the comma, got \`${token}\``);
      }
      wrapped.set(router.split('=')[0] ?? '', token);
      return router;
    }),
  });
  return new Map(
    [...found].map(([caip2, router]) => {
      const token = wrapped.get(caip2);
      return [caip2, token === undefined ? { router } : { router, wrapped: token }];
    }),
  );
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** Parses entries such as `eip155:1=0x7a25…`, one contract for each chain that has nodes. */
export function contracts(
  faults: Faults,
  name: string,
  { entries, endpoints, kind }: ChainEntries & { readonly kind: string },
): ReadonlyMap<string, string> {
  const byChain = new Map<string, string>();
  for (const entry of entries) {
    const [caip2 = '', address = ''] = entry.split(/=(.*)/s);
    if (!isEvmChain(caip2, endpoints)) {
      const which = endpoints === undefined ? '' : ' that has nodes';
      faults.push(`${name}: expected the id of an EVM chain${which}, got \`${caip2}\``);
    } else if (!ADDRESS.test(address)) {
      faults.push(`${name}: expected the address of a ${kind} after \`${caip2}=\`, got \`${address}\``);
    } else if (byChain.has(caip2)) faults.push(`${name}: expected one ${kind} for \`${caip2}\``);
    byChain.set(caip2, address);
  }
  return byChain;
}

/** The API of rewards, and the contracts that pay them. */
export interface RewardSettings {
  readonly distributors: ReadonlyMap<string, string>;
  readonly url: string;
  readonly apiKey: string | undefined;
}
