/** Wraps an object that is created on the first call of one of its methods. */
export function lazyMethods<T extends object>(make: () => Promise<T>) {
  return <Name extends keyof T & string>(...names: readonly Name[]): Pick<T, Name> => {
    const methods = names.map((name) => [
      name,
      async (...input: unknown[]) => {
        const target = (await make()) as Record<string, (...input: unknown[]) => unknown>;
        return target[name]!(...input);
      },
    ]);
    return Object.fromEntries(methods) as Pick<T, Name>;
  };
}
