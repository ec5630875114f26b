import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// One classic script and one style sheet: the static export opens from file://, where browsers refuse modules.
export default defineConfig({
  plugins: [svelte({ compilerOptions: { cssHash: ({ hash, css }) => `s-${hash(css)}` } })],
  build: {
    outDir: "../src/deemster/view/static",
    emptyOutDir: true,
    target: ["chrome123", "firefox121", "safari17.5"],
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: "src/main.ts",
      output: { format: "iife", entryFileNames: "app.js", assetFileNames: "app.[ext]" },
    },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
