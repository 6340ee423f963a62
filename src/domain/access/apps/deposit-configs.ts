import { invalidField } from '../../../errors.ts';
import type { CryptoDepositAsset, CryptoDepositAssetFilter } from '../../../generated/schemas.ts';
import type { Ids } from '../../../ports/runtime.ts';
import type { AppSettings } from './app.entity.ts';

/** The app setting with the routes of crypto deposit accounts. */
export const DEPOSIT_CONFIGS_SETTING = 'deposit_configs';

/** A named set of routes. A request for a crypto deposit account refers to it by its id. */
export interface DepositConfig {
  readonly id: string;
  readonly routes: readonly {
    readonly source: CryptoDepositAssetFilter;
    readonly destination: CryptoDepositAsset;
  }[];
}

const MAX_CONFIGS = 20;
const MAX_ROUTES = 10;
const MAX_VALUES = 100;
const MAX_TEXT = 256;
const MAX_ID = 64;

const POINTER = `/settings/${DEPOSIT_CONFIGS_SETTING}`;

export function readDepositConfigs(settings: AppSettings): readonly DepositConfig[] {
  return (settings[DEPOSIT_CONFIGS_SETTING] as readonly DepositConfig[] | null | undefined) ?? [];
}

/**
 * Checks the setting that an operator sends, and gives an id to each configuration without one. Assets and chains are
 * checked when an account is created, because the configured chains can change until then.
 *
 * @throws ApiError invalid_data that names the faulty member.
 */
export function checkDepositConfigs(value: unknown, { cuid }: Pick<Ids, 'cuid'>): DepositConfig[] {
  const configs = listOf(value, POINTER, { least: 0, most: MAX_CONFIGS }).map(
    (item, index): DepositConfig => {
      const pointer = `${POINTER}/${index}`;
      const { id, routes } = fieldsOf(item, pointer, ['id', 'routes']);
      return {
        id: id === undefined ? cuid() : textOf(id, `${pointer}/id`, MAX_ID),
        routes: listOf(routes, `${pointer}/routes`, { least: 1, most: MAX_ROUTES }).map((route, at) =>
          routeOf(route, `${pointer}/routes/${at}`),
        ),
      };
    },
  );
  const ids = configs.map(({ id }) => id);
  const repeated = ids.findIndex((id, index) => ids.indexOf(id) !== index);
  if (repeated !== -1) throw invalidField(`${POINTER}/${repeated}/id`, 'another configuration has this id');
  return configs;
}

function routeOf(value: unknown, pointer: string): DepositConfig['routes'][number] {
  const { source, destination } = fieldsOf(value, pointer, ['source', 'destination']);
  const arriving = assetOf(destination, `${pointer}/destination`);
  if (arriving.chain === undefined) throw invalidField(`${pointer}/destination/chain`, 'expected a chain');
  return { source: filterOf(source, `${pointer}/source`), destination: arriving };
}

function filterOf(value: unknown, pointer: string): CryptoDepositAssetFilter {
  const { mode, values } = fieldsOf(value, pointer, ['mode', 'values']);
  if (mode === 'all') {
    if (values === undefined) return { mode };
    throw invalidField(`${pointer}/values`, 'expected none with the mode `all`');
  }
  if (mode !== 'include' && mode !== 'exclude') {
    throw invalidField(`${pointer}/mode`, 'expected `all`, `include` or `exclude`');
  }
  const listed = listOf(values, `${pointer}/values`, { least: 1, most: MAX_VALUES });
  return { mode, values: listed.map((each, index) => assetOf(each, `${pointer}/values/${index}`)) };
}

function assetOf(value: unknown, pointer: string): CryptoDepositAsset {
  const { asset, chain } = fieldsOf(value, pointer, ['asset', 'chain']);
  return {
    asset: textOf(asset, `${pointer}/asset`, MAX_TEXT),
    ...(chain === undefined ? {} : { chain: textOf(chain, `${pointer}/chain`, MAX_TEXT) }),
  };
}

function fieldsOf(value: unknown, pointer: string, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField(pointer, 'expected an object');
  }
  const surplus = Object.keys(value).find((name) => !names.includes(name));
  if (surplus !== undefined) throw invalidField(`${pointer}/${surplus}`, 'no such setting');
  return value as Record<string, unknown>;
}

function listOf(
  value: unknown,
  pointer: string,
  { least, most }: { readonly least: number; readonly most: number },
): unknown[] {
  if (Array.isArray(value) && value.length >= least && value.length <= most) return value;
  throw invalidField(pointer, `expected an array of ${least} to ${most} items`);
}

function textOf(value: unknown, pointer: string, most: number): string {
  if (typeof value === 'string' && value !== '' && value.length <= most) return value;
  throw invalidField(pointer, `expected a string of 1 to ${most} characters`);
}
