/** A contract and its interface, as a compiler wrote it. */
interface ContractAbi {
  readonly name: string;
  readonly abi: Record<string, unknown>[];
}

/** Reads a file with an ABI: a list of items, or an artifact of Foundry or Hardhat. Undefined for other files. */
export async function abiOf(file: Pick<File, 'name' | 'text'>): Promise<ContractAbi | undefined> {
  let content: unknown;
  try {
    content = JSON.parse(await file.text());
  } catch {
    return undefined;
  }
  const { abi, contractName } = Array.isArray(content)
    ? { abi: content, contractName: undefined }
    : ((content ?? {}) as { abi?: unknown; contractName?: unknown });
  if (!Array.isArray(abi) || abi.length === 0) return undefined;
  const name = typeof contractName === 'string' ? contractName : file.name.replace(/(\.abi)?\.json$/, '');
  return { name, abi: abi as Record<string, unknown>[] };
}

/** The contracts among the files, each once. */
export function contractsIn(files: readonly (ContractAbi | undefined)[]): readonly ContractAbi[] {
  return [...new Map(files.flatMap((file) => (file === undefined ? [] : [[file.name, file]]))).values()];
}
