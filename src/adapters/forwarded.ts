/** Methods of something that is made at their first call. */
export function forwarded<T extends object>(make: () => Promise<T>) {
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
