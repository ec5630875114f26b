import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { takeToken } from "./lib/load.svelte";
import { startRouter } from "./lib/router.svelte";
import { theme } from "./lib/theme.svelte";

takeToken();
theme.read();
startRouter();
mount(App, { target: document.getElementById("app") as HTMLElement });
