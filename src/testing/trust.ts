import { getCACertificates, setDefaultCACertificates } from 'node:tls';

const trusted = new Set<string>();

/** Lets the connections that this process opens from now on trust an authority, in addition to those it trusts. */
export function trustInProcess(caPem: string): void {
  if (trusted.has(caPem)) return;
  setDefaultCACertificates([...getCACertificates('default'), caPem]);
  trusted.add(caPem);
}
