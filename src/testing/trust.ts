import { getCACertificates, setDefaultCACertificates } from 'node:tls';

const trusted = new Set<string>();

/**
 * Makes the connections that this process opens from now on trust an authority, in addition to those that it trusts
 * already.
 */
export function trustInProcess(caPem: string): void {
  if (trusted.has(caPem)) return;
  setDefaultCACertificates([...getCACertificates('default'), caPem]);
  trusted.add(caPem);
}
