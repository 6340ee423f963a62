import { brandedValues } from '../../generated/brand.ts';
import type { Brand } from '../brand.ts';

/** Translates the contract to a brand: headers, property names, DIDs, literals, error codes and examples. */
export function brandDocument(document: unknown, brand: Brand): unknown {
  return rename(document, '', brand);
}

function rename(node: unknown, name: string, brand: Brand): unknown {
  if (typeof node === 'string') {
    return brandedValues[name]?.includes(node) ? brand.writeLiteral(node) : brand.writeText(node);
  }
  if (Array.isArray(node)) return node.map((item) => rename(item, name, brand));
  if (typeof node !== 'object' || node === null) return node;
  // All literals in the schema of a branded value contain the neutral word.
  const isBranded = 'x-branded' in node && node['x-branded'] === true;
  return Object.fromEntries(
    Object.entries(node).map(([key, inner]) => [
      brand.writeText(key),
      isBranded && key !== 'description' ? renameLiterals(inner, brand) : rename(inner, key, brand),
    ]),
  );
}

function renameLiterals(value: unknown, brand: Brand): unknown {
  if (typeof value === 'string') return brand.writeLiteral(value);
  return Array.isArray(value) ? value.map((item) => renameLiterals(item, brand)) : value;
}
